"""PostgreSQL stores no NUL. Where that should stop nobody, `\\0` stands for it."""

from __future__ import annotations

from typing import Any

NUL = "\\u0000"  # in JSON


def without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\\0")
    if isinstance(value, dict):
        return {name: without_nul(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nul(each) for each in value]
    return value
