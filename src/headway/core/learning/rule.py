"""What an operator may say about learning: hints to start from, bounds, and pins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRule:
    """A hint is where learning starts; a pin is believed and nothing else. Per minute: `rpm` are
    requests, `tpm` tokens. `remaining_threshold`: the share of the limit that queued work leaves.
    """

    hint_rpm: float | None = None
    hint_tpm: float | None = None
    hint_concurrency: int | None = None
    min_rpm: float = 0.0
    max_rpm: float | None = None
    min_concurrency: int = 1
    max_concurrency: int | None = None
    pin_rpm: float | None = None
    pin_tpm: float | None = None
    pin_concurrency: int | None = None
    remaining_threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hint_rpm", "hint_tpm", "hint_concurrency", "max_rpm", "max_concurrency",
                     "pin_rpm", "pin_tpm", "pin_concurrency"):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} must be above 0, not {value!r}; to stop it, pause it")
        if not 0 <= self.min_rpm <= (self.max_rpm or float("inf")):
            raise ValueError(f"min_rpm must be from 0 to max_rpm, not {self.min_rpm!r}")
        if not 1 <= self.min_concurrency <= (self.max_concurrency or float("inf")):
            raise ValueError(
                f"min_concurrency must be from 1 to max_concurrency, not {self.min_concurrency!r}"
            )
        if not 0 <= self.remaining_threshold < 1:
            raise ValueError(
                f"remaining_threshold is a share from 0 to below 1, not {self.remaining_threshold}"
            )
