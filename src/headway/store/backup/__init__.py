"""Copies of a store: made while an engine works on it, whole or not there at all, and restored into
an empty place in such a way that nobody who held something before can still speak for it.

`file` says what a backup looks like, `sqlite` and `postgres` copy out and in, `numbers` has what
changes so that fences and terms of before are stale.
"""
