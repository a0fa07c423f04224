"""The page of metrics is complete and true, and no source or name can spoil it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse

from headway import __version__
from headway.api.metrics import (
    MAX_GATES,
    MAX_LABEL,
    MAX_UPSTREAMS,
    Counts,
    Exposition,
    GateReading,
    SlotsReading,
)
from headway.engine.meters import MAX_NAMES, Meters

INF = float("inf")
NO_LABELS: tuple[Any, ...] = ()


class Numbers:
    """Sources whose numbers a test sets; an exception is raised instead."""

    def __init__(self, **values: Any) -> None:
        self._values: dict[str, Any] = {
            "jobs": [("quick", "queued", 3), ("quick", "running", 1), ("slow", "queued", 7)],
            "gates": [
                GateReading(
                    "upstream",
                    "example.org",
                    2,
                    12.5,
                    {"declared": 8, "learned": 3},
                    {"rpm": 240.0},
                ),
                GateReading("lane", "quick", 1, 0.0, {"declared": INF}),
                GateReading("upstream", "paused.example", 0, INF, {}),
            ],
            "slots": SlotsReading(
                {("lease", "waiting"): 3, ("fairqueue", "absent"): 1},
                {"created": 9, "granted": 6},
                [("example.org", 4, 2, 1.5), ("calm.example", 1, 0, 0.0)],
            ),
            "sse_clients": 4,
            "takers_waiting": 2,
            "last_event": 4711,
            "store_up": True,
            **values,
        }

    def _value(self, name: str) -> Any:
        value = self._values[name]
        if isinstance(value, Exception):
            raise value
        return value

    def jobs(self) -> Iterable[tuple[str, str, int]]:
        return self._value("jobs")  # type: ignore[no-any-return]

    def gates(self) -> Iterable[GateReading]:
        return self._value("gates")  # type: ignore[no-any-return]

    def slots(self) -> SlotsReading:
        return self._value("slots")  # type: ignore[no-any-return]

    def sse_clients(self) -> int:
        return int(self._value("sse_clients"))

    def takers_waiting(self) -> int:
        return int(self._value("takers_waiting"))

    def last_event(self) -> int:
        return int(self._value("last_event"))

    def store_up(self) -> bool:
        return bool(self._value("store_up"))


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(exposition: Exposition) -> Samples:
    """The page, by name and labels. Nothing is there twice."""
    page, kind = exposition.render()
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    found: Samples = {}
    for family in parse(page.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def value(found: Samples, metric: str, /, **labels: str) -> float:
    return found[metric, tuple(sorted(labels.items()))]


def test_what_was_metered_is_on_the_page() -> None:
    meters = Meters()
    meters.submitted(5)
    meters.turned()
    meters.granted("quick", 0.2)
    meters.granted("quick", 7_200.0)
    meters.ended("scan", "ok", 3.0)
    meters.ended("scan", "pushback", 1.0)
    meters.pushed_back("example.org")
    meters.lost_lease()
    meters.committed(0.002)
    meters.slot_granted(0.3)

    found = samples(Exposition(meters, Numbers()))

    assert value(found, "headway_jobs_submitted_total") == 5
    assert value(found, "headway_grants_total") == 2
    assert value(found, "headway_turns_total") == 1
    assert value(found, "headway_ended_total", type="scan", outcome="ok") == 1
    assert value(found, "headway_ended_total", type="scan", outcome="pushback") == 1
    assert value(found, "headway_pushbacks_total", upstream="example.org") == 1
    assert value(found, "headway_lost_leases_total") == 1
    assert value(found, "headway_wait_seconds_bucket", lane="quick", le="0.1") == 0
    assert value(found, "headway_wait_seconds_bucket", lane="quick", le="0.25") == 1
    assert value(found, "headway_wait_seconds_bucket", lane="quick", le="3600.0") == 1
    assert value(found, "headway_wait_seconds_bucket", lane="quick", le="+Inf") == 2
    assert value(found, "headway_wait_seconds_count", lane="quick") == 2
    assert value(found, "headway_wait_seconds_sum", lane="quick") == pytest.approx(7_200.2)
    assert value(found, "headway_slot_wait_seconds_bucket", le="0.25") == 0
    assert value(found, "headway_slot_wait_seconds_bucket", le="0.5") == 1
    assert value(found, "headway_slot_wait_seconds_sum") == pytest.approx(0.3)
    assert value(found, "headway_run_seconds_count", type="scan") == 2
    assert value(found, "headway_commit_seconds_bucket", le="0.0025") == 1
    assert value(found, "headway_commit_seconds_bucket", le="0.001") == 0
    assert value(found, "headway_commit_seconds_sum") == pytest.approx(0.002)


def test_what_the_sources_say_is_on_the_page() -> None:
    found = samples(Exposition(Meters(), Numbers()))

    assert value(found, "headway_jobs", lane="quick", state="queued") == 3
    assert value(found, "headway_jobs", lane="slow", state="queued") == 7
    example = {"kind": "upstream", "name": "example.org"}
    assert value(found, "headway_gate_limit", **example, source="declared") == 8
    assert value(found, "headway_gate_limit", **example, source="learned") == 3
    assert value(found, "headway_leases", **example) == 2
    assert value(found, "headway_gate_closed_seconds", **example) == 12.5
    assert value(found, "headway_gate_closed_seconds", kind="lane", name="quick") == 0
    paused = {"kind": "upstream", "name": "paused.example"}
    assert value(found, "headway_gate_closed_seconds", **paused) == INF
    without_limit = [key for key in found if key[0] == "headway_gate_limit" and "lane" in str(key)]
    assert not without_limit
    assert value(found, "headway_slot_sessions", kind="lease", state="waiting") == 3
    assert value(found, "headway_slot_sessions", kind="fairqueue", state="absent") == 1
    assert value(found, "headway_slots_total", event="created") == 9
    assert value(found, "headway_slots_total", event="granted") == 6
    assert value(found, "headway_slot_reclaimed", upstream="example.org") == 4
    assert value(found, "headway_slot_outlived", upstream="example.org") == 2
    assert value(found, "headway_slot_outlived_seconds", upstream="example.org") == 1.5
    assert value(found, "headway_slot_outlived", upstream="calm.example") == 0
    assert value(found, "headway_sse_clients") == 4
    assert value(found, "headway_takers_waiting") == 2
    assert value(found, "headway_events_last") == 4711
    assert value(found, "headway_store_up") == 1
    assert value(found, "headway_build_info", version=__version__) == 1
    assert ("process_resident_memory_bytes", NO_LABELS) in found
    assert any(name == "python_info" for name, _ in found)
    assert any(name.startswith("python_gc_") for name, _ in found)


def test_what_was_learned_is_on_the_page() -> None:
    found = samples(Exposition(Meters(), Numbers()))
    about = {"kind": "upstream", "name": "example.org"}
    assert value(found, "headway_learned_rate", **about, unit="rpm") == 240.0


def test_a_store_that_is_away_is_shown() -> None:
    found = samples(Exposition(Meters(), Numbers(store_up=False)))

    assert value(found, "headway_store_up") == 0


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", True),
        ("text/html, Application/OpenMetrics-Text; version=0.0.1", True),
        ("application/openmetrics-text;q=0, text/plain", False),
        ("application/openmetrics-text;version=\U0001f600;;;,,", True),
    ],
)
def test_open_metrics_for_those_who_ask_for_it(accept: str, is_open: bool) -> None:
    meters = Meters()
    meters.granted("quick", 0.2)
    meters.ended("scan", "ok", 3.0)

    page, kind = Exposition(meters, Numbers()).render(accept)

    if is_open:
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        names = {family.name for family in parse_open_metrics(page.decode())}
        assert {"headway_grants", "headway_wait_seconds", "headway_build"} <= names
    else:
        assert kind.startswith("text/plain")
        assert not page.endswith(b"# EOF\n")


def test_names_and_help_follow_the_conventions() -> None:
    page, _ = Exposition(Meters(), Numbers()).render()
    for family in parse(page.decode()):
        if family.name.startswith("headway_"):
            assert family.documentation.endswith(".")
            assert family.documentation[0].isupper() or family.documentation[0] == "1"
            assert (family.type == "counter") == any(
                sample.name.endswith("_total") for sample in family.samples
            ) or not family.samples


# --- what fails


@pytest.mark.parametrize(
    ("source", "metric", "name"),
    [
        ("jobs", "headway_jobs", "jobs"),
        ("gates", "headway_leases", "gates"),
        ("slots", "headway_slot_sessions", "slots"),
        ("sse_clients", "headway_sse_clients", "sse_clients"),
        ("last_event", "headway_events_last", "events_last"),
        ("store_up", "headway_store_up", "store_up"),
    ],
)
def test_a_source_that_fails_is_left_out_and_counted(
    source: str, metric: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    exposition = Exposition(Meters(), Numbers(**{source: RuntimeError("no")}))

    with caplog.at_level(logging.ERROR):
        samples(exposition)
        found = samples(exposition)

    assert not any(each == metric for each, _ in found)
    assert value(found, "headway_scrape_errors_total", source=name) == 2
    assert ("headway_grants_total", NO_LABELS) in found
    assert ("headway_takers_waiting", NO_LABELS) in found
    assert len(caplog.records) == 1, "told once, not at each scrape"


def broken_halfway() -> Iterator[tuple[str, str, int]]:
    yield ("quick", "queued", 3)
    raise RuntimeError("the store went away")


@pytest.mark.parametrize("jobs", [broken_halfway(), [("quick", "queued", None)], [("quick",)], 5])
def test_a_source_that_talks_nonsense_is_left_out(jobs: Any) -> None:
    found = samples(Exposition(Meters(), Numbers(jobs=jobs)))

    assert not any(name == "headway_jobs" for name, _ in found)
    assert value(found, "headway_scrape_errors_total", source="jobs") == 1


def test_no_name_can_spoil_the_page() -> None:
    names = [
        'a"b', "a\\b", "a\nheadway_grants_total 99", "日本語", "\ud800", "\x00", "",
        "x" * 10_000, "x" * 9_999, "https://ann:Canary7f3kQz91@host", "https://ann:other99@host",
    ]  # fmt: skip
    meters = Meters()
    for name in names:
        meters.granted(name, 1.0)
        meters.ended(name, name, 1.0)
        meters.pushed_back(name)
    sources = Numbers(
        jobs=[(name, "queued", 1) for name in names] * 2,
        gates=[GateReading("upstream", name, 1, 0.0, {"declared": 1}) for name in names] * 2,
        slots=SlotsReading({}, {}, [(name, 1, 1, 1.0) for name in names] * 2),
    )

    exposition = Exposition(meters, sources)
    found = samples(exposition)

    assert value(found, "headway_grants_total") == len(names)
    counted = [n for (name, _), n in found.items() if name == "headway_wait_seconds_count"]
    assert sum(counted) == len(names), "names that look alike are counted together"
    for metric in ("headway_pushbacks_total", "headway_ended_total"):
        assert sum(n for (name, _), n in found.items() if name == metric) == len(names)
    assert sum(n for (name, _), n in found.items() if name == "headway_jobs") == 2 * len(names)
    outlived = [n for (name, _), n in found.items() if name == "headway_slot_outlived"]
    assert sum(outlived) == 2 * len(names)
    assert all(len(v) <= MAX_LABEL + 1 for _, labels in found for _, v in labels)
    assert "Canary" not in exposition.render()[0].decode()
    assert list(parse_open_metrics(exposition.render("application/openmetrics-text")[0].decode()))


def test_there_are_only_so_many_names() -> None:
    sources = Numbers(
        jobs=[(f"lane-{n}", "queued", 1) for n in range(1_000)],
        gates=[GateReading("upstream", f"u{n}", 0, 0.0, {}) for n in range(MAX_GATES + 5)],
        slots=SlotsReading({}, {}, [(f"u{n}", 2, 1, 0.5) for n in range(1_000)]),
    )

    found = samples(Exposition(Meters(), sources))

    assert sum(name == "headway_jobs" for name, _ in found) == MAX_NAMES + 1
    assert value(found, "headway_jobs", lane="other", state="queued") == 1_000 - MAX_NAMES
    assert sum(name == "headway_leases" for name, _ in found) == MAX_GATES
    assert value(found, "headway_gates_left_out") == 5
    assert sum(name == "headway_slot_outlived" for name, _ in found) == MAX_UPSTREAMS + 1
    assert value(found, "headway_slot_outlived", upstream="other") == 1_000 - MAX_UPSTREAMS


def test_two_servers_in_one_process_have_a_page_each() -> None:
    first, second = Meters(), Meters()
    pages = [Exposition(first, Numbers()), Exposition(second, Numbers())]
    first.submitted()

    assert [value(samples(page), "headway_jobs_submitted_total") for page in pages] == [1, 0]


def test_many_may_scrape_at_once() -> None:
    exposition = Exposition(Meters(), Numbers(jobs=RuntimeError("no")))
    threads = [threading.Thread(target=exposition.render) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert value(samples(exposition), "headway_scrape_errors_total", source="jobs") == 9


def test_applications_add_what_they_count() -> None:
    def counts() -> list[Counts]:
        return [Counts("llm_tokens", "Tokens.", ("channel",), {("main",): 12.0, ("a\nb",): 1.0})]

    found = samples(Exposition(Meters(), Numbers(), {"channels": counts}))
    assert value(found, "headway_llm_tokens_total", channel="main") == 12.0


def test_an_application_that_fails_is_left_out_and_counted() -> None:
    def counts() -> list[Counts]:
        raise RuntimeError("no")

    found = samples(Exposition(Meters(), Numbers(), {"channels": counts}))
    assert value(found, "headway_scrape_errors_total", source="channels") == 1.0


def test_online_calls_are_counted_by_upstream_and_answer() -> None:
    meters = Meters()
    for answer in ("200", "200", "429"):
        meters.online_ended("main", answer)
    found = samples(Exposition(meters, Numbers()))
    assert value(found, "headway_online_calls_total", upstream="main", answer="200") == 2.0
    assert value(found, "headway_online_calls_total", upstream="main", answer="429") == 1.0
