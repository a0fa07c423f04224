"""Every store: who did what, when, and to which job."""

from __future__ import annotations

import pytest

from headway.store import Store
from headway.store.records import Command, Event, TrailRow
from tests.store.kit import T0, Engine, ended, event, job, put, put_one, rows_of

LATER = T0 + 1_000_000
ME = "token 'ops' from 203.0.113.7"


def numbers_of(rows: list[TrailRow]) -> list[int]:
    return [each.id for each in rows]


def test_an_event_says_who_did_it(engine: Engine) -> None:
    number = put_one(engine.store)
    rows = [event(number, "cancel", who=ME), event(number, "cancelled"), event(who="😀 '\"%\\")]

    engine.commit(events=rows)

    assert rows_of(engine.store.events(0, 10)) == rows
    assert [each.who for each in engine.store.events_of(number)] == [ME, None]


def test_an_event_may_leave_out_who_did_it(engine: Engine) -> None:
    engine.commit(events=[event()[:8], event(who=ME), event()[:8]])

    assert [each.who for each in engine.store.events(0, 10)] == [None, ME, None]
    assert Event(1, T0, None, "grant", None, None, 0, "", None).who is None


def test_the_trail_knows_where_the_job_of_an_event_belongs(engine: Engine) -> None:
    number = put_one(engine.store, type="fetch", lane="slow", tenant="acme", key="k")
    engine.commit(
        events=[
            event(number, "grant", before="queued", after="running", fence=3, who=ME),
            event(None, "gate_pause", at=T0 + 1, detail="{}", subject="lane:slow"),
            event(number + 999, "ok"),
        ]
    )

    assert engine.store.trail(0, 10) == [
        TrailRow(1, T0, number, "grant", "queued", "running", 3, "", None, ME,
                 "fetch", "slow", "acme", "k"),
        TrailRow(2, T0 + 1, None, "gate_pause", None, None, 0, "{}", "lane:slow", None,
                 None, None, None, None),
        TrailRow(3, T0, number + 999, "ok", None, None, 0, "", None, None,
                 None, None, None, None),
    ]  # fmt: skip


def test_the_trail_is_read_page_by_page(engine: Engine) -> None:
    engine.commit(events=[event()] * 5)
    store = engine.store

    assert numbers_of(store.trail(0, 2)) == [1, 2]
    assert numbers_of(store.trail(2, 2)) == [3, 4]
    assert numbers_of(store.trail(4, 2)) == [5]
    assert store.trail(5, 2) == store.trail(0, 0) == store.trail(0, -1) == []


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**30])
def test_there_is_nothing_after_the_largest_number(engine: Engine, number: int) -> None:
    engine.commit(events=[event(who=ME)] * 2)

    assert engine.store.trail(number, 10) == []
    assert numbers_of(engine.store.trail(-number, number)) == [1, 2]
    assert numbers_of(engine.store.audit(number, number)) == [2, 1]
    assert engine.store.audit(-number, 10) == []


def test_a_tenant_sees_the_events_of_its_own_jobs_only(engine: Engine) -> None:
    ours, theirs, nobodys = put(
        engine.store, job(tenant="acme"), job(tenant="other"), job(tenant="")
    )
    events = [event(each, who=ME) for each in (ours, theirs, nobodys, ours, None)]
    engine.commit(events=events)
    store = engine.store

    assert numbers_of(store.trail(0, 10, tenant="acme")) == [1, 4]
    assert numbers_of(store.trail(1, 10, tenant="acme")) == [4]
    assert numbers_of(store.trail(0, 1, tenant="acme")) == [1]
    assert numbers_of(store.trail(0, 10, tenant="")) == [3]
    assert numbers_of(store.audit(None, 10, "acme")) == [4, 1]
    assert store.trail(0, 10, tenant="nobody") == []


@pytest.mark.parametrize("tenant", ["\x00", "a\x00", "\ud800"])
def test_a_tenant_that_cannot_be_sees_nothing(engine: Engine, tenant: str) -> None:
    engine.commit(events=[event(put_one(engine.store), who=ME)])

    assert engine.store.trail(0, 10, tenant=tenant) == []
    assert engine.store.audit(None, 10, tenant) == []


def test_a_tenant_no_longer_sees_events_of_jobs_that_were_purged(engine: Engine) -> None:
    kept, gone = put(engine.store, job(tenant="acme"), job(tenant="acme"))
    engine.commit(ended=[ended(gone)], events=[event(kept), event(gone), event(kept)])
    engine.store.purge(LATER, LATER, LATER)

    assert numbers_of(engine.store.trail(0, 10)) == [1, 2, 3]
    assert numbers_of(engine.store.trail(0, 10, tenant="acme")) == [1, 3]


def test_the_audit_has_what_people_did_newest_first(engine: Engine) -> None:
    engine.commit(events=[event(), event(who="a"), event(), event(who=""), event(who="b")])
    store = engine.store

    assert [(each.id, each.who) for each in store.audit(None, 10)] == [(5, "b"), (4, ""), (2, "a")]
    assert numbers_of(store.audit(None, 2)) == [5, 4]
    assert numbers_of(store.audit(4, 2)) == [2]
    assert store.audit(2, 2) == []


def test_the_last_event(engine: Engine) -> None:
    store = engine.store
    assert store.last_event() == 0

    engine.commit(events=[event()] * 3)
    assert store.last_event() == 3

    store.purge(LATER, LATER, LATER)
    assert store.events(0, 10) == []
    assert store.last_event() == 3, "what comes next is after it"

    engine.commit(events=[event()])
    assert (store.last_event(), numbers_of(store.trail(3, 10))) == (4, [4])


def test_a_command_says_who_asks(engine: Engine, other: Store) -> None:
    other.command("cancel", "7", None, T0, who=ME)
    other.command("pause", "7", [1], T0)

    first, second = engine.store.commands(10)

    assert first == Command(first.id, T0, "cancel", "7", "null", ME)
    assert second == Command(second.id, T0, "pause", "7", "[1]", None)
