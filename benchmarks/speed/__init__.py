"""The measurement of speed and scale: `python -m benchmarks.bench`."""
