"""`GET /api/history`: series of equal length, of what has just happened and of before a restart."""

from __future__ import annotations

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of
from tests.hands.kit import eventually
from tests.servers import NewServer

STEPS = {"live": (2, 150), "1h": (15, 240), "24h": (300, 288)}
ALWAYS = {
    "started", "completed", "failed", "pushbacks", "wait_p50_s", "wait_p95_s", "running", "waiting",
    "online", "refused_online",
}  # fmt: skip
MORE = {
    "all": {"submitted"}, "lane": set(), "upstream": {"limit_rpm", "limit_concurrency", "closed"},
}  # fmt: skip


def total(found: JSON, name: str) -> int:
    return sum(value for value in found["series"][name] if value is not None)


@pytest.mark.parametrize("span", STEPS)
@pytest.mark.parametrize("kind", MORE)
def test_all_series_of_a_span_are_of_one_length(api: Api, span: str, kind: str) -> None:
    name = None if kind == "all" else new_name()
    said = {} if name is None else {"name": name}
    found = api.get("/api/history", span=span, kind=kind, **said)
    step_s, length = STEPS[span]
    assert (found["span"], found["kind"], found["name"]) == (span, kind, name)
    assert (found["step_s"], found["end"] - found["start"]) == (step_s, step_s * length)
    assert found["start"] % step_s == 0
    assert set(found["series"]) == ALWAYS | MORE[kind]
    assert {len(values) for values in found["series"].values()} == {length}
    if kind != "all":
        assert {value for values in found["series"].values() for value in values} == {None}


def test_what_has_happened_is_in_it(api: Api, kind: str) -> None:
    upstream, lane = new_name("site"), new_name("lane")
    for _ in range(3):
        api.enqueue(kind, upstream=upstream, lane=lane)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=200)
        worker.complete(worker.take_one(), status_code=429, retry_after_s=3_600)

        def seen() -> JSON | None:
            found = api.get("/api/history", kind="upstream", name=upstream)
            return found if total(found, "pushbacks") else None

        found: JSON = eventually(seen)
    assert (total(found, "started"), total(found, "completed")) == (2, 1)
    for span in ("1h", "24h"):

        def agrees(span: str = span) -> bool:
            of_lane = api.get("/api/history", span=span, kind="lane", name=lane)
            return (total(of_lane, "started"), total(of_lane, "pushbacks")) == (2, 1)

        eventually(agrees)
        eventually(lambda span=span: total(api.get("/api/history", span=span), "submitted") >= 3)
    said = {"kind": "upstream", "name": upstream}
    eventually(lambda: total(api.get("/api/history", **said), "closed") > 0)


def test_what_is_missing_or_unknown_is_said(api: Api) -> None:
    for kind in ("lane", "upstream"):
        said = api.problem(422, "GET", "/api/history", "wrong-input", params={"kind": kind})
        assert f"kind={kind}&name=" in said["detail"]
    for wrong in ({"span": "7d"}, {"kind": "tool", "name": "x"}, {"kind": "lane", "name": ""}):
        api.problem(422, "GET", "/api/history", params=wrong)


def test_it_outlives_a_restart(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server()
    with Api(server.url) as api:
        for _ in range(5):
            api.enqueue("kept", upstream="kept.example")
    server.restart()
    with Api(server.url) as api:
        for span in ("1h", "24h"):
            eventually(
                lambda span=span: total(api.get("/api/history", span=span), "submitted") == 5
            )
        said = {"kind": "upstream", "name": "kept.example", "span": "1h"}
        eventually(lambda: total(api.get("/api/history", **said), "waiting"))
        assert total(api.get("/api/history", span="live"), "submitted") == 0
