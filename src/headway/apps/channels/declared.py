"""Channels that a settings file declares: a table `[channel.NAME]` for each.

The key is named by the environment variable that holds it (`api_key_env`), or stands there itself
(`api_key`) in a file that nobody else may read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from headway.api.settings_table import tables_in
from headway.apps.channels.channel import Channel
from headway.errors import BadSettings

TABLE = "channel"

Declared = list[tuple[Channel, str | None]]


def declared_channels(file: str | None, environment: Mapping[str, str] = os.environ) -> Declared:
    """What the file says; what is wrong in it is said with the name of the channel."""
    if file is None:
        return []
    tables = tables_in(file).get(TABLE, {})
    if not isinstance(tables, dict):
        raise BadSettings(f"channel in {file} is a table for each channel: [channel.NAME]")
    found: Declared = []
    for code, value in tables.items():
        try:
            found.append(_channel(code, dict(value), environment))
        except (ValueError, TypeError, msgspec.ValidationError) as error:
            raise BadSettings(f"[channel.{code}] in {file}: {error}") from error
    return found


def _channel(
    code: str, value: dict[str, Any], environment: Mapping[str, str]
) -> tuple[Channel, str | None]:
    key = value.pop("api_key", None)
    variable = value.pop("api_key_env", None)
    if key is not None and variable is not None:
        raise ValueError("api_key and api_key_env say the same thing; set one of them")
    if variable is not None:
        key = environment.get(variable)
        if not key:
            raise ValueError(f"api_key_env names {variable}, which is not set")
    if key is not None and not isinstance(key, str):
        raise ValueError("api_key is text")
    known = set(Channel.__struct_fields__) - {"code"}
    unknown = sorted(set(value) - known)
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    channel = msgspec.convert({"code": code, **value}, Channel)
    channel.check()
    return channel, key
