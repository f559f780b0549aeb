"""Groundwork beside what an engineer would otherwise assemble: the same passages, vectors and questions.

Each folder here is a peer: `requirements.txt`, pinned, for an environment of its own under `.venvs`, and
`run.py`, which says how it stores and finds passages (drive.py has the contract). docs/peers.md says how
each is configured and what the figures mean.
"""
