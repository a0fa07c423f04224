"""Queries of the PostgreSQL store, one a file."""
