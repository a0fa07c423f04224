"""JSON text of payloads, results and checkpoints: what comes back is what went in, or an error."""

from __future__ import annotations

import math
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def json_text(value: Any) -> str:
    """Raises TypeError, ValueError or OverflowError for what JSON cannot say."""
    data = _encode(value)
    if b"null" in data:  # the encoder writes it for numbers that JSON does not have
        _check_numbers(msgspec.to_builtins(value))
    return data.decode()


def _check_numbers(value: Any) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"JSON has no number {value!r}")
    elif isinstance(value, dict):
        for each in value.values():
            _check_numbers(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            _check_numbers(each)
