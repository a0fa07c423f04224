"""Who of those that wait at a host stands in line, when only so many may.

The places in line are shared out between tenants: a place that is free goes to the tenant with the
fewest, and a newcomer takes one from the tenant with the most. So nobody is kept out by a crowd.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Ranks:
    """Tenants by a count, so that the lowest and the highest are found at once."""

    __slots__ = ("_by_count", "_count")

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._by_count: dict[int, dict[str, None]] = {}

    def put(self, tenant: str, count: int) -> None:
        if self._count.get(tenant) != count:
            self.drop(tenant)
            self._count[tenant] = count
            self._by_count.setdefault(count, {})[tenant] = None

    def drop(self, tenant: str) -> None:
        count = self._count.pop(tenant, None)
        if count is not None:
            peers = self._by_count[count]
            del peers[tenant]
            if not peers:
                del self._by_count[count]

    def lowest(self) -> tuple[str, int] | None:
        return self._first(min(self._by_count)) if self._by_count else None

    def highest(self) -> tuple[str, int] | None:
        return self._first(max(self._by_count)) if self._by_count else None

    def _first(self, count: int) -> tuple[str, int]:
        return next(iter(self._by_count[count])), count


class Lobby(Generic[T]):
    """Members are kept by tenant, first come first. What `enter` and `leave` return is to be done
    by the caller: these step into the line, those step out of it and wait on.
    """

    def __init__(self, limit: int | None, per_tenant: int | None) -> None:
        self.limit = limit
        self.per_tenant = per_tenant
        self._inside: dict[str, dict[T, None]] = {}
        self._outside: dict[str, dict[T, None]] = {}
        self.size = 0  # of all that are inside
        self._crowded = Ranks()  # tenants that are inside, by how many they are
        self._wanting = Ranks()  # tenants with somebody outside who may come in, likewise

    def __bool__(self) -> bool:
        return bool(self._inside or self._outside)

    def enter(self, member: T, tenant: str) -> tuple[list[T], list[T]]:
        """A newcomer: in, out."""
        self._outside.setdefault(tenant, {})[member] = None
        self._look(tenant)
        stepped_out = self._make_room(tenant)
        return self._fill(), stepped_out

    def seat(self, member: T, tenant: str) -> None:
        """Somebody who is in line already, whatever the limits are."""
        self._inside.setdefault(tenant, {})[member] = None
        self.size += 1
        self._look(tenant)

    def leave(self, member: T, tenant: str) -> list[T]:
        """Somebody waits no longer: in."""
        outside = self._outside.get(tenant, {})
        if member in outside:
            del outside[member]
        elif member in self._inside.get(tenant, {}):
            del self._inside[tenant][member]
            self.size -= 1
        self._look(tenant)
        return self._fill()

    def resize(self, limit: int | None, per_tenant: int | None) -> list[T]:
        """New limits. Who is inside stays."""
        self.limit, self.per_tenant = limit, per_tenant
        for tenant in list(self._outside):
            self._look(tenant)
        return self._fill()

    def _fill(self) -> list[T]:
        stepped_in: list[T] = []
        while (self.limit is None or self.size < self.limit) and (
            lowest := self._wanting.lowest()
        ) is not None:
            tenant = lowest[0]
            member = next(iter(self._outside[tenant]))
            del self._outside[tenant][member]
            self._inside.setdefault(tenant, {})[member] = None
            self.size += 1
            self._look(tenant)
            stepped_in.append(member)
        return stepped_in

    def _make_room(self, tenant: str) -> list[T]:
        """Whoever has most gives a place up to one who has two less, or they would only swap."""
        if self.limit is None or self.size < self.limit:
            return []
        mine = len(self._inside.get(tenant, ()))
        most = self._crowded.highest()
        if most is None or most[1] < mine + 2 or not self._may_want(tenant):
            return []
        crowd = self._inside[most[0]]
        member = next(reversed(crowd))  # the last who came
        del crowd[member]
        self.size -= 1
        waiting = self._outside.setdefault(most[0], {})
        self._outside[most[0]] = {member: None, **waiting}
        self._look(most[0])
        return [member]

    def _may_want(self, tenant: str) -> bool:
        inside = len(self._inside.get(tenant, ()))
        return bool(self._outside.get(tenant)) and (
            self.per_tenant is None or inside < self.per_tenant
        )

    def _look(self, tenant: str) -> None:
        """Bring the two ranks up to date, and forget who is gone."""
        inside = self._inside.get(tenant)
        if inside:
            self._crowded.put(tenant, len(inside))
        else:
            self._inside.pop(tenant, None)
            self._crowded.drop(tenant)
        if not self._outside.get(tenant):
            self._outside.pop(tenant, None)
        if self._may_want(tenant):
            self._wanting.put(tenant, len(inside or ()))
        else:
            self._wanting.drop(tenant)
