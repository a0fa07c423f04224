"""The archive over HTTP: one file a thing that people look at."""
