"""Retrieval quality: judged sets, reference systems, the product, and the tables of `make eval`."""
