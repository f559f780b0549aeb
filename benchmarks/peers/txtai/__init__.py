"""A peer; run.py says which."""
