"""What can narrow or close a gate besides its pool: one file for each."""

from headway.core.limits.breaker import Breaker, BreakerRule
from headway.core.limits.cooldown import Cooldown
from headway.core.limits.hold import MinHold
from headway.core.limits.pace import Pace, PaceRule
from headway.core.limits.quiet import QuietHours, QuietRule

__all__ = [
    "Breaker",
    "BreakerRule",
    "Cooldown",
    "MinHold",
    "Pace",
    "PaceRule",
    "QuietHours",
    "QuietRule",
]
