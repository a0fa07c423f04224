"""One file for each query."""
