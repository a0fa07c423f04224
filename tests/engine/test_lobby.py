"""Who stands in line when only so many may: everybody in turn, and nobody for a crowd."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.slots.lobby import Lobby, Ranks

Limit = int | None


@pytest.fixture(autouse=True)
def on_every_store() -> None:
    """There is no store in these."""


class Seen:
    """A lobby, and beside it who is in and who is out as its caller knows it."""

    def __init__(self, limit: Limit, per_tenant: Limit) -> None:
        self.lobby: Lobby[int] = Lobby(limit, per_tenant)
        self.tenant_of: dict[int, str] = {}
        self.inside: set[int] = set()
        self.number = 0

    def enter(self, tenant: str) -> int:
        self.number += 1
        self.tenant_of[self.number] = tenant
        self.take(*self.lobby.enter(self.number, tenant))
        return self.number

    def leave(self, member: int) -> None:
        tenant = self.tenant_of.pop(member)
        self.inside.discard(member)
        self.take(self.lobby.leave(member, tenant), [])

    def take(self, stepped_in: list[int], stepped_out: list[int]) -> None:
        for member in stepped_out:
            assert member in self.inside, "it steps out that was in"
            self.inside.remove(member)
        for member in stepped_in:
            assert member not in self.inside, "it steps in that was out"
            assert member in self.tenant_of, "nobody steps in who has left"
            self.inside.add(member)

    def counts(self) -> Counter[str]:
        return Counter(self.tenant_of[member] for member in self.inside)

    def check(self) -> None:
        lobby, inside = self.lobby, self.counts()
        limit = float("inf") if lobby.limit is None else lobby.limit
        each = float("inf") if lobby.per_tenant is None else lobby.per_tenant
        assert lobby.size == len(self.inside) <= limit
        assert all(count <= each for count in inside.values())
        outside = {self.tenant_of[member] for member in self.tenant_of.keys() - self.inside}
        wanting = {tenant for tenant in outside if inside[tenant] < each}
        if wanting:
            assert lobby.size == limit, f"there is room, and {wanting} are outside"
            most = max(inside.values(), default=0)
            assert all(inside[tenant] >= most - 1 for tenant in wanting), "somebody has too many"
        for tenant in outside:
            mine = [member for member in self.tenant_of if self.tenant_of[member] == tenant]
            assert mine[: inside[tenant]] == sorted(self.inside & set(mine)), "first come"
        assert bool(lobby) == bool(self.tenant_of)


LIMITS = st.none() | st.integers(1, 6)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60)


@settings(max_examples=300)
@given(LIMITS, LIMITS, STEPS)
def test_whoever_comes_and_goes_the_places_are_shared_out(
    limit: Limit, per_tenant: Limit, steps: list[tuple[int, int]]
) -> None:
    seen = Seen(limit, per_tenant)
    for what, number in steps:
        members = list(seen.tenant_of)
        if what or not members:
            seen.enter("abcd"[number % 4])
        else:
            seen.leave(members[number % len(members)])
        seen.check()
    for member in list(seen.tenant_of):
        seen.leave(member)
        seen.check()
    lobby = seen.lobby
    assert (lobby.size, lobby._inside, lobby._outside) == (0, {}, {})
    assert (lobby._crowded.lowest(), lobby._wanting.lowest()) == (None, None)


@given(LIMITS, LIMITS, STEPS, st.lists(st.tuples(LIMITS, LIMITS), max_size=5))
def test_with_other_limits_nobody_who_is_in_must_go_and_whoever_may_comes_in(
    limit: Limit, per_tenant: Limit, steps: list[tuple[int, int]], sizes: list[tuple[Limit, Limit]]
) -> None:
    seen = Seen(limit, per_tenant)
    for _, number in steps:
        seen.enter("abcd"[number % 4])
    for new in sizes:
        before = set(seen.inside)
        seen.take(seen.lobby.resize(*new), [])
        assert before <= seen.inside
        inside = seen.counts()
        for member in seen.tenant_of.keys() - seen.inside:
            full = new[0] is not None and seen.lobby.size >= new[0]
            has_most = new[1] is not None and inside[seen.tenant_of[member]] >= new[1]
            assert full or has_most
    while seen.tenant_of:
        seen.leave(next(iter(seen.tenant_of)))
    assert (seen.lobby.size, bool(seen.lobby)) == (0, False)


def test_first_come_first_in_and_the_rest_when_there_is_room() -> None:
    lobby: Lobby[str] = Lobby(2, None)
    assert lobby.enter("a", "x") == (["a"], [])
    assert lobby.enter("b", "x") == (["b"], [])
    assert lobby.enter("c", "x") == ([], [])
    assert lobby.enter("d", "x") == ([], [])
    assert lobby.leave("a", "x") == ["c"]
    assert lobby.leave("b", "x") == ["d"]
    assert lobby.leave("c", "x") == []
    assert lobby.leave("c", "x") == [], "to leave twice changes nothing"


def test_a_newcomer_takes_a_place_from_the_crowd_whose_last_waits_on_as_the_next() -> None:
    lobby: Lobby[str] = Lobby(3, None)
    for member in ("a", "b", "c", "d"):
        lobby.enter(member, "crowd")
    assert lobby.enter("one", "other") == (["one"], ["c"])
    assert lobby.leave("a", "crowd") == ["c"]
    assert lobby.leave("one", "other") == ["d"]


def test_nobody_makes_room_for_a_tenant_that_has_but_one_less() -> None:
    lobby: Lobby[str] = Lobby(3, None)
    for member, tenant in (("a", "x"), ("b", "x"), ("c", "y")):
        lobby.enter(member, tenant)
    assert lobby.enter("d", "y") == ([], []), "they would only swap"
    assert lobby.enter("e", "z") == (["e"], ["b"])


def test_somebody_outside_who_asks_again_stays_where_it_was() -> None:
    lobby: Lobby[str] = Lobby(1, None)
    for member in ("a", "b", "c"):
        lobby.enter(member, "x")
    assert lobby.enter("b", "x") == ([], [])
    assert lobby.leave("a", "x") == ["b"]
    assert lobby.leave("b", "x") == ["c"]


def test_who_stands_in_line_already_is_seated_whatever_the_limits_are() -> None:
    lobby: Lobby[str] = Lobby(1, None)
    lobby.seat("a", "x")
    lobby.seat("b", "x")
    assert lobby.size == 2
    assert lobby.enter("c", "y")[0] == []
    lobby.leave("a", "x")
    lobby.leave("b", "x")
    assert lobby.leave("c", "y") == []
    assert not lobby


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-1, 4))))
def test_ranks_know_the_lowest_and_the_highest(steps: list[tuple[str, int]]) -> None:
    ranks, model = Ranks(), dict[str, int]()
    for tenant, count in steps:
        if count < 0:
            ranks.drop(tenant)
            model.pop(tenant, None)
        else:
            ranks.put(tenant, count)
            model[tenant] = count
        lowest, highest = ranks.lowest(), ranks.highest()
        if not model:
            assert (lowest, highest) == (None, None)
            continue
        assert lowest is not None
        assert highest is not None
        assert (lowest[1], highest[1]) == (min(model.values()), max(model.values()))
        assert (model[lowest[0]], model[highest[0]]) == (lowest[1], highest[1])
