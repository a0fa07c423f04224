"""Lists of gates for a page that shows them live: in order, in pages, with all that is in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of
from tests.hands.kit import eventually

NOUNS = ("lanes", "upstreams", "tools", "types")


def names(answer: JSON) -> list[str]:
    return [each["name"] for each in answer["items"]]


@pytest.fixture
def family(api: Api) -> list[str]:
    """Upstreams that only this test knows, by name."""
    found = sorted(new_name("Fam") for _ in range(7))
    end = new_name(".end")
    for each in found:
        api.ok("PUT", f"/api/upstreams/{each}{end}/settings", json={"limit": 1})
    return [each + end for each in found]


def listed(api: Api, family: list[str], **more: Any) -> JSON:
    return api.get("/api/upstreams", q=family[0].partition(".")[2], **more)


@pytest.mark.parametrize("noun", NOUNS)
def test_without_any_wish_all_of_them_come_by_name(api: Api, noun: str) -> None:
    name = new_name()
    api.ok("PUT", f"/api/{noun}/{name}/settings", json={"limit": 1})
    answer = api.get(f"/api/{noun}")
    assert name in names(answer)
    assert names(answer) == sorted(names(answer))
    assert answer["total"] == answer["count"] == len(answer["items"])
    assert (answer["page"], answer["size"]) == (1, None)
    assert "holders" not in answer["items"][0]
    whole = api.get(f"/api/{noun}", q=name.upper(), whole=True)
    assert (names(whole), whole["total"], whole["size"]) == ([name], 1, 50)
    assert (whole["items"][0]["holders"], whole["items"][0]["tenants"]) == ([], [])
    one = api.get(f"/api/{noun}/{name}")
    for said in (answer, one):
        assert (
            abs(datetime.now().timestamp() - datetime.fromisoformat(said["now"]).timestamp()) < 60
        )


@pytest.mark.parametrize("order", ["name", "activity"])
@pytest.mark.parametrize("size", [1, 3, 7, 200])
def test_pages_hold_each_of_them_once(api: Api, family: list[str], order: str, size: int) -> None:
    assert names(listed(api, family, order=order)) == family
    found: list[str] = []
    for page in range(1, 20):
        answer = listed(api, family, order=order, size=size, page=page)
        assert (answer["total"], answer["size"], answer["page"]) == (7, size, page)
        assert answer["count"] == len(answer["items"]) <= size
        if not answer["items"]:
            break
        found += names(answer)
    assert found == family
    whole = listed(api, family, size=size, whole=True)
    assert whole["size"] == min(size, 100)


def test_the_busiest_come_first_then_the_closed_ones(
    api: Api, family: list[str], kind: str
) -> None:
    idle, waits, runs, closed, paused, pushed, _ = family
    for _ in range(3):
        api.enqueue(kind, upstream=runs, tenant="a", labels={"at": "home"}, key=new_name())
    with worker_of(api, kind) as worker:
        worker.take_one()
        api.enqueue(f"{kind}-other", upstream=waits)
        api.post(f"/api/upstreams/{paused}/pause")
        api.post(f"/api/upstreams/{closed}/close", {"for_s": 100})
        api.enqueue(kind, upstream=pushed)
        (work,) = [each for each in worker.take() if each["upstream"] == pushed]
        said = {"kind": "pushback", "status": 429, "retry_after_s": 0.001}
        worker.complete(work, outcome=said)
        api.post("/api/jobs/bulk", {"action": "cancel", "q": f"upstream:{pushed}",
                                    "dry_run": False})  # fmt: skip
        answer = listed(api, family, order="activity", whole=True)
        assert names(answer)[:2] == [runs, waits]
        assert names(answer)[2:6] == [closed, paused, pushed, idle]
        first = answer["items"][0]
        assert (first["running"], first["waiting"]) == (1, 2)
        assert first["running_by"] == {"online": 0, "normal": 1, "leftover": 0}
        (holder,) = first["holders"]
        assert (holder["traffic"], holder["labels"]) == ("normal", {"at": "home"})
        (tenant,) = first["tenants"]
        assert (tenant["tenant"], tenant["share"], tenant["weight"]) == ("a", 1.0, 1.0)
        assert tenant["waiting_since"] <= answer["now"]
        assert answer["items"][4]["pushed_back_at"]
    api.post(f"/api/upstreams/{paused}/resume")


def test_a_lane_is_as_busy_as_its_jobs(api: Api, kind: str) -> None:
    mark = new_name()
    for lane, many in (("a", 1), ("b", 2)):
        for _ in range(many):
            api.enqueue(kind, lane=f"{lane}-{mark}")

    def found() -> list[tuple[str, int]]:
        answer = api.get("/api/lanes", q=mark, order="activity")
        return [(each["name"], each["waiting"]) for each in answer["items"]]

    assert eventually(lambda: (seen := found()) == [(f"b-{mark}", 2), (f"a-{mark}", 1)] and seen)


@pytest.mark.parametrize(
    "wrong", [{"page": 0}, {"size": 0}, {"size": 201}, {"order": "size"}, {"whole": "perhaps"},
              {"q": "x" * 201}, {"q": "\0"}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(api: Api, wrong: JSON) -> None:
    api.problem(422, "GET", "/api/upstreams", "wrong-input", params=wrong)
