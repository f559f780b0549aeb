"""multilingual-e5-small on this machine: no network, no GPU, about 94 languages, 384 dimensions."""

MODEL = "multilingual-e5-small"
