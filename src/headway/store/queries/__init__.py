"""Queries that every store understands, one a file. A question mark is a value."""
