"""What happened on a real engine, again under the same policy and under another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headway import App, Pushback
from headway.simulation import BadModel, Report, simulate
from headway.simulation.replay import read_recording, recording_of
from headway.simulation.scenario import Models, replayed
from headway.store.records import Query
from headway.testing import World
from tests.engine.kit import takes
from tests.simulation.kit import SITE, per_minute, settings, site, upstream

CAPS = {"limit": 2, "every": "1s"}


def events_of(app: App) -> Iterator[dict[str, Any]]:
    for row in app.store.trail(0, 100_000):
        yield {"kind": "event", "at": row.at, "job": row.job, "event": row.event,
               "before": row.before, "after": row.after}  # fmt: skip


def jobs_of(app: App) -> Iterator[dict[str, Any]]:
    for job in app.store.jobs(Query(limit=10_000)):
        yield {"kind": "job", "id": job.id, "type": job.type, "lane": job.lane,
               "tenant": job.tenant, "priority": job.priority, "key": job.key,
               "upstreams": json.loads(job.upstreams or "[]")}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """An hour of a real engine: three tenants, holds by chance, some pushed back, some failing."""
    app = App("sqlite:///unused.db")
    app.upstream(SITE, **CAPS)
    rng = Random(5)
    pushed: set[int] = set()

    @app.job(upstream=SITE)
    async def visit(number: int) -> None:
        await takes(rng.uniform(2.0, 20.0))
        if number % 40 == 0 and number not in pushed:
            pushed.add(number)
            raise Pushback(retry_after="3s")

    with World(app) as world:
        for number in range(1, 241):
            visit.options(tenant=f"t{number % 3}", priority=1 + number % 2 * 4).enqueue(number)
            world.run_for(f"{rng.randrange(1, 11)}s")
        world.run_for("1h")
        return [*jobs_of(app), *events_of(app)]


def again(rows: list[dict[str, Any]], **caps: Any) -> Report:
    found = recording_of(rows, "log")
    return simulate(replayed("it", site(**caps), Models({}), found))


def test_under_the_same_policy_the_waits_are_as_they_were(rows: list[dict[str, Any]]) -> None:
    seen = again(rows, **CAPS).recorded
    assert seen is not None
    assert seen.many == 240
    assert seen.p50_s > 1.0, "somebody had to wait"
    assert seen.would_p50_s == pytest.approx(seen.p50_s, rel=0.1, abs=1.0)
    assert seen.would_p95_s == pytest.approx(seen.p95_s, rel=0.1, abs=1.0)


def test_with_a_higher_cap_they_would_have_waited_less(rows: list[dict[str, Any]]) -> None:
    seen = again(rows, limit=8).recorded
    assert seen is not None
    assert seen.would_p95_s < 0.2 * seen.p95_s


def test_with_a_lower_cap_they_would_have_waited_longer(rows: list[dict[str, Any]]) -> None:
    seen = again(rows, limit=1).recorded
    assert seen is not None
    assert seen.would_p95_s > 2 * seen.p95_s


def test_what_was_pushed_back_is_pushed_back_again(rows: list[dict[str, Any]]) -> None:
    pushed = sum(row.get("event") == "pushback" for row in rows)
    assert pushed >= 6
    assert again(rows, **CAPS).refused == pushed


def event(job: int, at: float, name: str, before: str | None, after: str) -> dict[str, Any]:
    return {"job": job, "at": at, "event": name, "before": before, "after": after, "type": "visit"}


def test_each_attempt_of_a_job_is_kept() -> None:
    found = recording_of([
        event(1, 100.0, "submit", None, "pending"), event(1, 110.0, "due", "pending", "queued"),
        event(1, 115.0, "grant", "queued", "running"),
        event(1, 118.0, "retry", "running", "pending"),
        event(1, 148.0, "due", "pending", "queued"), event(1, 148.0, "grant", "queued", "running"),
        event(1, 150.0, "ok", "running", "completed"),
    ], "log")  # fmt: skip
    (arrival,) = found.arrivals
    assert (arrival.at, arrival.recorded_wait_s) == (10.0, 5.0)
    assert [(each.hold_s, each.outcome.kind.value) for each in arrival.attempts] == [
        (3.0, "failed"), (2.0, "ok"),
    ]  # fmt: skip
    assert any("says nothing about upstreams" in note for note in found.notes)


def test_what_cannot_be_known_is_left_out_and_counted() -> None:
    found = recording_of([
        event(1, 0.0, "ok", "running", "completed"),  # it began before the log
        event(2, 1.0, "submit", None, "queued"), event(2, 2.0, "cancel", "queued", "cancelled"),
        event(3, 3.0, "grant", "queued", "running"),  # it waited from before, and still runs
        event(4, 9.0, "submit", None, "queued"),  # it never went
    ], "log")  # fmt: skip
    assert found.left_out == 2
    assert [each.at for each in found.arrivals] == [0.0, 9.0]
    assert found.arrivals[0].recorded_wait_s is None
    assert "2 of 4 jobs are left out" in found.notes[0]


def test_a_lane_of_the_recording_is_held_to_its_cap() -> None:
    rows = [event(n, 0.0, "submit", None, "queued") for n in (1, 2)]
    rows += [{"kind": "job", "id": n, "type": "visit", "lane": "slow"} for n in (1, 2)]
    for n in (1, 2):
        rows += [event(n, 0.0, "grant", "queued", "running"),
                 event(n, 30.0, "ok", "running", "completed")]  # fmt: skip
    found = recording_of(rows, "log")
    report = simulate(replayed("it", settings(**{"lane:slow": {"limit": 1}}), Models({}), found))
    assert report.waits.longest_s == pytest.approx(30.0)


def test_a_job_that_is_not_known_any_more_does_not_seem_to_ask_for_nothing() -> None:
    rows = [event(n, 0.0, "submit", None, "queued") for n in (1, 2)]
    rows += [event(n, 1.0, "grant", "queued", "running") for n in (1, 2)]
    found = recording_of([*rows, {"kind": "job", "id": 2, "cost": 0, "upstreams": [SITE]}], "log")
    assert [(each.upstreams, each.cost) for each in found.arrivals] == [((SITE,), 0.0)]
    assert found.left_out == 1


def test_what_an_upstream_bears_goes_by_how_long_its_calls_really_took() -> None:
    rows: list[dict[str, Any]] = []
    for n in range(1, 9):
        rows += [{"kind": "job", "id": n, "upstreams": [SITE]},
                 event(n, 0.0, "submit", None, "queued"),
                 event(n, 0.0, "grant", "queued", "running"),
                 event(n, 60.0, "ok", "running", "completed")]  # fmt: skip
    model = upstream(per_minute(4, "concurrency"), hold_s=1.0)
    report = simulate(replayed("it", site(limit=4), Models({"*": model}), recording_of(rows, "")))
    assert report.limit_per_minute == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "line 1 is no object"),
        ("", "has no events of jobs"),
        ('{"kind": "job"}', "line 1 is not as `headway events --record` writes it"),
        ('\n{"kind": "job", "id": 1, "priority": "high"}', "line 2"),
        ('{"kind": "job", "id": 1, "upstreams": "a.example"}', "upstreams"),
        ('{"kind": "job", "id": 1, "weight": -1}', "weight"),
        ('{"job": [1], "event": "ok", "at": 1}', "$.job"),
        ('{"job": 1, "event": "ok", "at": "noon"}', "the time of the event is 'noon'"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_file(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(BadModel) as wrong:
        read_recording(str(path))
    assert str(path) in str(wrong.value)
    assert said in str(wrong.value)
