"""What must be true of a store and a journal after any number of crashes, once all is drained."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from headway.core.lifecycle import TERMINAL, TRANSITIONS, Event, State
from headway.store import Store, open_store
from headway.store.records import Event as EventRow
from headway.store.records import Job, Query


def check(url: str, directory: Path) -> None:
    journal = [line.split() for line in (directory / "journal").read_text().splitlines()]
    store = open_store(url)
    try:
        jobs = {row.id: row for row in store.jobs(Query(limit=100_000))}
        events = store.events(0, 1_000_000)
        no_promise_is_broken(store, journal, jobs)
        every_job_has_ended(jobs)
        no_run_overlaps_another(journal)
        only_valid_leases_count(store, journal, jobs, events)
        events_have_no_gaps(events)
        every_trail_is_legal(jobs, events)
        the_schedule_goes_on_without_doubles(store, jobs)
    finally:
        store.close()


def no_promise_is_broken(store: Store, journal: list[list[str]], jobs: dict[int, Job]) -> None:
    for what, id, *more in journal:
        if what == "enqueued":
            assert int(id) in jobs, f"job {id} was acknowledged and is lost"
        elif what == "cancelled":
            assert jobs[int(id)].state == "cancelled", f"job {id} was cancelled, and is not"
        elif what == "result":
            kept = store.result(int(id))
            assert kept is not None
            assert kept.value == more[0], f"job {id} had the result {more[0]}, now {kept.value}"


def every_job_has_ended(jobs: dict[int, Job]) -> None:
    for job in jobs.values():
        if job.schedule is None and job.not_before <= job.created_at + 60:
            expected = "failed" if job.type == "doomed" else "completed"
            assert job.state == expected, f"job {job.id} ({job.type}) is {job.state}: {job.error}"


def no_run_overlaps_another(journal: list[list[str]]) -> None:
    fences: dict[str, int] = {}
    at_work: set[tuple[str, str]] = set()
    for what, *words in journal:
        if what in ("start", "end"):
            life, id, fence = words
            if what == "end":
                at_work.remove((life, id))
                continue
            assert (life, id) not in at_work, f"job {id} runs twice at once"
            assert int(fence) > fences.get(id, 0), f"job {id} started again with an older fence"
            at_work.add((life, id))
            fences[id] = int(fence)


def only_valid_leases_count(
    store: Store, journal: list[list[str]], jobs: dict[int, Job], events: list[EventRow]
) -> None:
    ended = {(int(words[2]), int(words[3])) for words in journal if words[0] == "end"}
    done = [event for event in events if event.event == Event.OK.value]
    assert len({event.job for event in done}) == len(done), "a job was completed twice"
    for event in done:
        assert event.job is not None
        assert (event.job, event.fence) in ended, f"job {event.job} is done, but did not run"
        assert jobs[event.job].fence == event.fence
        result = store.result(event.job)
        assert result is not None
        assert result.value == str(event.fence), f"job {event.job} has the result of another run"
    grants = [event.fence for event in events if event.event == Event.GRANT.value]
    assert grants == sorted(set(grants)), "fences must rise"


def events_have_no_gaps(events: list[EventRow]) -> None:
    assert [event.id for event in events] == list(range(1, len(events) + 1))


def every_trail_is_legal(jobs: dict[int, Job], events: list[EventRow]) -> None:
    trails: dict[int, list[EventRow]] = defaultdict(list)
    for event in events:
        if event.job is not None and event.after is not None:
            trails[event.job].append(event)
    for id, trail in trails.items():
        assert trail[0].event == "submit", f"job {id} begins with {trail[0]}"
        state = trail[0].after
        for event in trail[1:]:
            assert event.before == state, f"job {id}: {event} does not follow {state}"
            state = event.after
            legal = TRANSITIONS[State(event.before or "")][Event(event.event)]
            # What is due at once is seen as queued straight away.
            at_once = legal is State.PENDING and state == State.QUEUED.value
            assert at_once or state == legal.value, f"job {id}: {event}"
        assert jobs[id].state == state, f"job {id} is {jobs[id].state}, its trail ends with {state}"
    unseen = [id for id, job in jobs.items() if id not in trails and State(job.state) in TERMINAL]
    assert not unseen, f"jobs {unseen} have ended without a trail"


def the_schedule_goes_on_without_doubles(store: Store, jobs: dict[int, Job]) -> None:
    assert [each.name for each in store.schedules()] == ["tick"]
    ticks = [job for job in jobs.values() if job.schedule == "tick"]
    still_open = [job for job in ticks if State(job.state) not in TERMINAL]
    assert len(still_open) == 1, f"{len(still_open)} occurrences are open"
    assert {job.state for job in ticks if job not in still_open} <= {State.COMPLETED.value}
    # The key of an occurrence names its time, so that no time has two jobs, and no job two times.
    claimed = [row[0] for row in store.rows("select job from occurrences")]
    assert sorted(claimed) == sorted(job.id for job in ticks)
