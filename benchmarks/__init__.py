"""Measurements of quality and speed. They print a table and write `benchmarks/results/*.json`."""
