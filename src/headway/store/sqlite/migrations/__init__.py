"""The schema, one file for each version; a released one is never changed."""
