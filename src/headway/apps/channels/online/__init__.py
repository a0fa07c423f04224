"""Calls that go at once: from the request to the last byte of the answer."""
