"""What can be wrong with a model."""

from __future__ import annotations

from headway.errors import HeadwayError


class BadModel(HeadwayError, ValueError):
    """A policy, model, load or recording cannot be used; the message names the file and the key."""
