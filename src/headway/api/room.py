"""How many open jobs each tenant has, for a server that puts jobs into the store and runs no engine
that would know.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from time import monotonic

from headway.store import Store

FRESH_S = 1.0


class Room:
    """Counting looks at all open jobs, so it is done once for all tenants: once a second at most,
    or, when there are very many, in a tenth of the time. What was let in since is added.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counted: dict[str, int] = {}
        self._since: Counter[str] = Counter()
        self._until = float("-inf")
        self._counting = asyncio.Lock()

    async def takes(self, tenant: str, more: int, limit: int) -> bool:
        """Whether there is room for so many more. Then they count."""
        async with self._counting:
            if monotonic() > self._until:
                await self._count()
        if self._counted.get(tenant, 0) + self._since[tenant] + more > limit:
            return False
        self._since[tenant] += more
        return True

    async def _count(self) -> None:
        self._since.clear()
        began = monotonic()
        self._counted = await asyncio.to_thread(self._store.open_by_tenant)
        now = monotonic()
        self._until = now + max(FRESH_S, 10 * (now - began))
