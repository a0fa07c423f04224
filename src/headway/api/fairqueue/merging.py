"""What a controller sends, laid over what was there before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.api.fairqueue.profiles import KEYS

DEPTH = 4  # fairQueue, profiles, a pattern, weightedScheduler; deeper down nothing is known
# Who the controller is and who may give orders is never for the controller itself to say.
OURS = ("controller", "controllerUrl", "controllerToken", "controllerApiToken", "internalApiToken",
        "env", "role", "instanceId", "appName", "appVersion")  # fmt: skip


def lifted(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The shape of `config.json`: keys of fairQueue that were sent directly move into it."""
    direct = {key: value for key, value in sent.items() if key in KEYS}
    document = {key: value for key, value in sent.items() if key not in KEYS and key not in OURS}
    if direct:
        inner = document.get("fairQueue")
        if inner is None or isinstance(inner, Mapping):
            document["fairQueue"] = laid_over(direct, inner or {})
    return document


def laid_over(before: Mapping[str, Any], sent: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Objects key by key. Null and empty text say nothing, so what was there stays."""
    merged = dict(before)
    for key, value in sent.items():
        if value is None or value == "":
            continue
        old = merged.get(key)
        if depth < DEPTH and isinstance(value, Mapping) and isinstance(old, Mapping):
            merged[key] = laid_over(old, value, depth + 1)
        else:
            merged[key] = value
    return merged
