"""Annals storage: the source of truth for conversations and events."""

import os

# Read when numpy is imported. Its products are small here: one thread computes them sooner than two
# agree on it, and the second would look for work for milliseconds after each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
