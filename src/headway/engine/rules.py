"""Recurrence rules as JSON, so that they can be stored."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core.recurrence import Every, Recurrence
from headway.cron import Cron

Rule = Every | Cron


def rule_text(rule: Rule) -> str:
    if isinstance(rule, Cron):
        kept: dict[str, Any] = {"cron": rule.expression, "zone": rule.zone}
    else:
        kept = {"every_s": rule.interval_s, "anchor_at": rule.anchor_at, "jitter_s": rule.jitter_s,
                "growth": rule.growth, "max_s": rule.max_s, "seed": rule.seed}  # fmt: skip
    return msgspec.json.encode(kept).decode()


def rule_of(text: str) -> Rule:
    kept = msgspec.json.decode(text)
    if "cron" in kept:
        return Cron(kept["cron"], zone=kept["zone"])
    return Every(
        kept["every_s"],
        anchor_at=kept["anchor_at"],
        jitter_s=kept["jitter_s"],
        growth=kept["growth"],
        max_s=kept["max_s"],
        seed=kept["seed"],
    )


def after_strikes(rule: Rule, strikes: int) -> Recurrence:
    """A rule that grows waits longer after failures; a calendar does not."""
    if isinstance(rule, Every) and rule.growth > 1.0 and strikes:
        return rule.stretched(strikes)
    return rule
