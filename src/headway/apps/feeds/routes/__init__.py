"""Feeds over HTTP: one file for each part of the contract."""
