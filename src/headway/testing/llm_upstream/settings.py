"""What an upstream may be told: its limits, how it answers, and a script of mishaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Some = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]

Style = Literal["openai", "anthropic", "none"]
WindowKind = Literal["fixed", "aligned", "sliding"]
RetryAfter = Literal["whole", "exact", "none"]


class Ban(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whoever is refused `after` times `within_s` gets 403 for `for_s`."""

    after: Some
    within_s: Positive
    for_s: Positive = 300.0


class Step(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What becomes of the next `times` calls, before any limit is asked.

    A status other than 200 is the answer. Without one the call goes on as usual, after `hang_s`;
    `cut` closes the connection in the middle of its answer, `drop` before the first byte.
    """

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    times: Some = 1
    retry_after: Amount | None = None
    hang_s: Amount = 0.0
    cut: bool = False
    drop: bool = False
    message: str | None = None

    @property
    def is_refusal(self) -> bool:
        return self.status is not None and self.status != 200


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Everything may be changed while it runs. None: no such limit."""

    rpm: Count | None = None  # calls per window
    tpm: Count | None = None  # tokens per window, of questions and answers
    window: WindowKind = "fixed"  # from its first call; "aligned": from full minutes
    window_s: Positive = 60.0
    bucket: tuple[Positive, Annotated[float, msgspec.Meta(ge=1)]] | None = None  # per second, burst
    concurrency: Count | None = None
    per_key: bool = False  # each key has the limits for itself
    ban: Ban | None = None
    headers: Style = "openai"
    retry_after: RetryAfter = "whole"  # seconds, rounded up; "exact": with a fraction

    latency_ms: Amount = 50.0  # until the answer, or its first chunk
    jitter_ms: Amount = 10.0  # more or less than that
    slow_above: Some | None = None  # with more in flight, each takes longer in proportion
    refusal_ms: Amount = 0.0
    chunks: Some | None = None  # of a stream; None: one for each word
    chunk_ms: Amount = 10.0  # between two chunks
    answer_tokens: Some | None = None  # what it was asked is filled up to this
    dimensions: Some = 8  # of embeddings

    keys: tuple[str, ...] = ()  # none: any key will do
    models: tuple[str, ...] = ()  # none: any model is known
    script: tuple[Step, ...] = ()


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with these changes. ValueError says which of them is wrong."""
    merged = {name: getattr(settings, name) for name in Settings.__struct_fields__} | dict(changes)
    try:
        return msgspec.convert(msgspec.to_builtins(merged), Settings)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"the upstream cannot be set so: {error}") from error
