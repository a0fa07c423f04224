"""The schema, one file a version."""
