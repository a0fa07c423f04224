"""The courier asks for as much as the fleet can do, and takes back what nobody begins."""

from __future__ import annotations

import pytest

from headway import App
from headway.apps.celery.courier import Refused
from headway.apps.celery.starts import MAX_WAIT_S
from headway.apps.celery.tables import Kind
from headway.core import Outcome
from headway.engine.hands import RemoteWork
from tests.celery.carrying import Carrying


def test_it_asks_for_no_more_than_there_are_free_places(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(10)
        assert carrying.works() == [], "nobody is there"
        carrying.here(3)
        works = carrying.works()
        assert len(works) == 3
        carrying.here(2, "b")
        assert len(carrying.works()) == 2
        for work in works[:2]:
            carrying.claim(work)
            carrying.complete(work)
        assert len(carrying.works()) == 2


def test_what_takes_a_free_place_is_committed_with_what_has_left_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(3)
        carrying.here(1)
        [work] = carrying.works()
        carrying.claim(work)
        sent: list[object] = []
        send = app.store.send
        monkeypatch.setattr(app.store, "send", lambda batch: (sent.append(batch), send(batch)))
        carrying.complete(work)
        assert len(carrying.works()) == 1
        assert len(sent) == 1


def test_a_message_has_nothing_in_it_but_id_and_fence(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(args='{"password": "hunter2"}')
        carrying.here(1)
        [parcel] = carrying.parcels
        assert isinstance(parcel.work, RemoteWork)
        assert parcel.body.startswith(f"[[{parcel.work.id}, {parcel.work.fence}], {{}}".encode())
        assert b"hunter2" not in parcel.body
        assert "hunter2" not in str(parcel.options)


def test_jobs_say_what_they_wait_for(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.ask(carrying.courier.look)
        [id] = carrying.put()
        assert "no Celery worker is there for queue 'celery'" in app.handle(id).explain().detail
        carrying.ask(lambda now: carrying.courier.broker_is("ConnectionError", now))
        assert "broker cannot be reached: ConnectionError" in app.handle(id).explain().detail
        carrying.here(1)
        assert carrying.works() == [], "there is no way to send it"
        carrying.ask(lambda now: carrying.courier.broker_is("", now))
        assert len(carrying.works()) == 1


def test_what_nobody_claims_goes_back_without_a_burnt_attempt(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        [id] = carrying.put()
        carrying.here(1)
        [first] = carrying.works()
        for _ in range(4):  # the worker says that it is there all the while
            carrying.pass_time(8)
            carrying.here(1)
        [second] = carrying.works()
        assert second.fence > first.fence
        assert second.attempt == 1
        with pytest.raises(Refused, match="stale"):
            carrying.claim(first)
        assert carrying.claim(second).work.id == id


def test_a_claim_may_be_repeated_by_whoever_made_it_and_by_nobody_else(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put()
        carrying.here(1)
        [work] = carrying.works()
        assert carrying.claim(work).work == carrying.claim(work).work
        with pytest.raises(Refused, match="claimed"):
            carrying.claim(work, "somebody else's")
        with pytest.raises(Refused, match="stale"):
            carrying.claim(work._replace(id=work.id + 1))
        carrying.complete(work)
        with pytest.raises(Refused, match="stale"):
            carrying.claim(work)


def test_a_worker_that_says_nothing_is_forgotten(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.here(2)
        carrying.pass_time(31)
        carrying.put()
        assert carrying.works() == []


def test_a_job_that_is_cancelled_before_anybody_began_ends_at_once(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        [id] = carrying.put()
        carrying.here(1)
        [work] = carrying.works()
        app.handle(id).cancel()
        carrying.world.run_for(0.01)
        assert app.handle(id).state == "cancelled"
        with pytest.raises(Refused, match="stale"):
            carrying.claim(work)


def test_a_job_whose_upstream_has_closed_meanwhile_does_not_begin(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(2, upstreams='["a.example"]')
        carrying.here(2)
        first, second = carrying.works()
        carrying.claim(first)
        carrying.complete(first, Outcome.pushback(retry_after_s=60))
        with pytest.raises(Refused, match="later"):
            carrying.claim(second)
        row = app.handle(second.id).row()
        assert (row.state, row.tries) == ("queued", None)


def test_claims_that_come_together_begin_at_the_pace(app: App) -> None:
    """The first message was held up, so both arrive at the same moment."""
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(2, upstreams='["a.example"]')
        carrying.here(2)
        carrying.pass_time(2)
        first, second = carrying.works()
        assert carrying.start_in_s(first) == 0.0
        assert carrying.start_in_s(second) == pytest.approx(1.0, abs=0.01)
        assert carrying.start_in_s(second) == pytest.approx(1.0, abs=0.01), "it has not begun"
        carrying.pass_time(2)
        assert carrying.start_in_s(second) == 0.0, "its moment has passed, it gets another"


def test_the_next_one_comes_later_by_what_the_first_may_be_late(app: App) -> None:
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(2, upstreams='["a.example"]')
        carrying.here(2)
        carrying.pass_time(2)
        first, second = carrying.works()
        carrying.claim(first, slack_s=0.25)
        assert carrying.start_in_s(second) == pytest.approx(1.25, abs=0.01)


def test_what_was_booked_is_given_back_only_while_nobody_has_booked_after_it(app: App) -> None:
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(3, upstreams='["a.example"]')
        carrying.here(3)
        carrying.pass_time(3)
        first, second, third = carrying.works()
        assert carrying.start_in_s(first) == 0.0
        assert carrying.start_in_s(second) == pytest.approx(1.0, abs=0.01)
        assert carrying.start_in_s(third) == pytest.approx(2.0, abs=0.01)
        assert carrying.start_in_s(second) == pytest.approx(3.0, abs=0.02), "its place is lost"


def test_who_would_be_ended_while_he_waits_does_not_begin(app: App) -> None:
    """A wait takes no more than half of a task's own time limit."""
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(3, upstreams='["a.example"]')
        carrying.here(3)
        carrying.pass_time(3)
        first, second, third = carrying.works()
        carrying.claim(first)
        assert carrying.claim(second, within_s=3.0).start_at is not None
        with pytest.raises(Refused, match="later"):
            carrying.claim(third, within_s=3.0)
        row = app.handle(third.id).row()
        assert (row.state, row.tries) == ("pending", None)
        carrying.pass_time(2)
        [again] = carrying.works()
        assert carrying.claim(again, within_s=3.0).work.id == third.id


def test_nothing_waits_where_nothing_is_paced(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(upstreams='["a.example"]')
        carrying.here(1)
        [work] = carrying.works()
        assert carrying.claim(work).start_at is None


def test_after_a_restart_claims_of_before_are_refused_and_the_jobs_go_back(app: App) -> None:
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(2, upstreams='["a.example"]')
        carrying.here(2)
        carrying.pass_time(2)
        silent, running = carrying.works()
        carrying.claim(running)
        carrying.world.crash()
        carrying.courier = carrying._courier()
        carrying.world.restart()
        with pytest.raises(Refused, match="stale"):
            carrying.claim(silent)
        brain = app.engine.brain  # type: ignore[union-attr]
        carrying.ask(lambda now: brain.remote.heartbeat(running.id, running.fence, now, worker="w"))
        for _ in range(8):
            carrying.pass_time(6)
            carrying.here(2)
            carrying.ask(
                lambda now: brain.remote.heartbeat(running.id, running.fence, now, worker="w")
            )
        [again] = carrying.works()
        assert again.id == silent.id
        assert app.handle(running.id).state == "running"


def test_after_a_restart_nobody_begins_before_all_who_were_told_have(app: App) -> None:
    app.upstream("a.example", every="1s")
    carrying = Carrying(app)
    with carrying.world:
        carrying.put(2, upstreams='["a.example"]')
        carrying.here(1)
        [running] = carrying.works()
        carrying.claim(running)
        carrying.world.crash()
        carrying.courier = carrying._courier()
        carrying.world.restart()
        carrying.here(2)
        carrying.pass_time(2)
        [work] = carrying.works()
        assert carrying.start_in_s(work) == pytest.approx(MAX_WAIT_S + 1.0 - 2.0, abs=0.05)


def test_whoever_waits_for_a_task_hears_that_it_was_given_up(app: App) -> None:
    carrying = Carrying(app, Kind.TASK)
    with carrying.world:
        [waiting] = carrying.put()
        app.handle(waiting).cancel()
        carrying.world.run_for(0.01)
        assert [(word.id, word.state) for word in carrying.words] == [(waiting, "cancelled")]


def test_a_payload_without_a_message_fails_for_good(app: App) -> None:
    carrying = Carrying(app, Kind.TASK)
    with carrying.world:
        [id] = carrying.put()
        carrying.here(1)
        carrying.world.run_for(0.01)
        row = app.handle(id).row()
        assert row.state == "failed"
        assert "no message of a Celery task" in (row.error or "")


def test_what_the_broker_did_not_take_is_sent_again(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        carrying.put()
        carrying.here(1)
        parcels = list(carrying.parcels)
        [first] = carrying.works()
        carrying.ask(lambda now: carrying.courier.unsent(parcels, now))
        [second] = carrying.works()
        assert (second.id, second.attempt) == (first.id, 1)


def test_a_pause_takes_a_job_back_that_nobody_began(app: App) -> None:
    carrying = Carrying(app)
    with carrying.world:
        [id] = carrying.put()
        carrying.here(1)
        assert len(carrying.works()) == 1
        app.pause(id)
        carrying.world.run_for(0.01)
        assert app.handle(id).state == "paused"
