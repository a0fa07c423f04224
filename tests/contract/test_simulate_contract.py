"""`POST /api/simulate`: both runs side by side, and nothing is changed by it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of

SERIES = {"came", "taken", "refused", "failed", "limit", "waiting", "running"}


def ask(api: Api, kind: str, name: str, settings: JSON, **more: Any) -> JSON:
    body = {"kind": kind, "name": name, "settings": settings, **more}
    found: JSON = api.post("/api/simulate", body)
    return found


def test_a_change_of_a_cap_is_seen_in_both_runs_and_changes_nothing(api: Api) -> None:
    name = new_name("host")
    api.ok("PUT", f"/api/upstreams/{name}/settings", json={"limit": 1})
    before = api.get(f"/api/upstreams/{name}")["settings"]
    found = ask(api, "upstream", name, {"limit": 4}, load="backlog", upstream="cap",
                duration_s=3_600)  # fmt: skip
    assert api.get(f"/api/upstreams/{name}")["settings"] == before
    as_it_is, what_if = found["runs"]
    assert (as_it_is["name"], what_if["name"]) == ("as it is", "what if")
    assert as_it_is["came"] == what_if["came"] > 100
    assert what_if["finished_after_s"] < 0.4 * as_it_is["finished_after_s"]
    assert [run["gates"][0]["cap"] for run in found["runs"]] == [1, 4]
    for run in found["runs"]:
        lengths = {len(values) for each, values in run["series"].items() if each in SERIES}
        assert lengths == {len(run["gates"][0]["inside"])}
    (facts,) = found["facts"]
    finish = next(each for each in facts if each["what"] == "finish")
    assert finish["better"] is True
    assert any("finishes" in line for line in found["verdict"])


def test_what_a_pattern_says_holds_for_the_gate_that_is_asked_about(api: Api) -> None:
    suffix = new_name("zone")
    api.ok("PUT", f"/api/upstreams/*.{suffix}/settings", json={"limit": 3, "cooldown": "1s"})
    found = ask(api, "upstream", f"a.{suffix}", {"limit": 5}, load="steady", duration_s=600)
    assert [run["gates"][0]["cap"] for run in found["runs"]] == [3, 5]


def test_a_lane_can_be_asked_about(api: Api) -> None:
    lane = new_name("lane")
    api.ok("PUT", f"/api/lanes/{lane}/settings", json={"limit": 2})
    found = ask(api, "lane", lane, {"limit": 1}, load="steady", upstream="cap", duration_s=60)
    assert [run["gates"][0]["cap"] for run in found["runs"]] == [2, 1]
    assert (found["runs"][0]["gates"][0]["kind"], found["load"]) == ("lane", "steady")


def test_what_has_happened_is_replayed(api: Api, kind: str) -> None:
    name = new_name("host")
    for _ in range(3):
        api.enqueue(kind, upstream=name)
    with worker_of(api, kind) as worker:
        for _ in range(3):
            worker.complete(worker.take_one(), status_code=200)
    found = ask(api, "upstream", name, {"limit": 1}, duration_s=3_600)
    assert found["load"] == "recent"
    as_it_is, what_if = found["runs"]
    assert as_it_is["came"] == what_if["came"] >= 3
    assert what_if["recorded"]["many"] >= 3
    assert (what_if["gates"][0]["name"], what_if["gates"][0]["cap"]) == (name, 1)


def test_the_same_question_has_the_same_answer(api: Api) -> None:
    def one(seed: int) -> JSON:
        found = ask(api, "upstream", "same.example", {"limit": 2}, load="random", seed=seed,
                    duration_s=1_800)  # fmt: skip
        for run in found["runs"]:
            del run["took_s"]
        return found

    assert one(3) == one(3)
    assert one(3) != one(4)


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"limits": 2}, {"every": "often"}])
def test_settings_that_make_no_sense_are_refused(api: Api, wrong: JSON) -> None:
    body = {"kind": "upstream", "name": "x.example", "settings": wrong, "load": "steady"}
    api.problem(422, "POST", "/api/simulate", "bad-settings", json=body)


@pytest.mark.parametrize(
    "more",
    [{"kind": "moon"}, {"load": "sometimes"}, {"upstream": "none"}, {"duration_s": 1e9},
     {"duration_s": 1}, {"seed": -1}, {"name": ""}, {"colour": "red"}],
)  # fmt: skip
def test_what_is_not_known_is_refused(api: Api, more: JSON) -> None:
    body = {"kind": "upstream", "name": "x.example", "settings": {}, "load": "steady", **more}
    api.problem(422, "POST", "/api/simulate", json=body)


def test_one_at_a_time(api: Api) -> None:
    body = {"kind": "upstream", "name": "busy.example", "settings": {"limit": 1},
            "load": "overload", "duration_s": 1_800}  # fmt: skip

    def send(_: int) -> int:
        with Api(api.url) as own:
            return own.send("POST", "/api/simulate", json=body).status_code

    with ThreadPoolExecutor(3) as pool:
        answers = sorted(pool.map(send, range(3)))
    assert answers[0] == 200
    assert answers[-1] == 503
