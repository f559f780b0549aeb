"""Connectors that are written down rather than programmed: a YAML file each, and one engine for all."""
