"""By which rules somebody asks for a slot."""

from __future__ import annotations

import msgspec


class Weighting(msgspec.Struct, frozen=True):
    """An order for those who ask for it: whoever has waited longer pays less for its place, so that
    its turn comes again sooner. Without it everybody pays the same.
    """

    base: float = 1.0
    per_wait: float = 1.0
    wait_s: float = 0.5  # a tenant that has waited so long counts as having waited once


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one client's wait and for its lease. What holds for the upstream is a policy
    like all others (`headway.engine.settings`).
    """

    lease_s: float = 90.0  # from the grant, or from the last renewal
    max_wait_s: float | None = None  # in all; then the answer is `timeout`
    idle_s: float = 90.0  # without a word from the client; then it is forgotten
    claim_s: float = 2.0  # how long an absent client keeps its place in line, and a grant
    keep_s: float = 5.0  # after a grant, how long the name of the wait is still good
    max_waiters: int | None = None  # that stand in line at the upstream; the others just wait
    max_waiters_per_tenant: int | None = None
    weighting: Weighting | None = None
