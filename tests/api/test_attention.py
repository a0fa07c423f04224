"""What needs attention: noticed in a world with a clock of its own, said in sentences, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headway import App, Fail, Pushback
from headway.api import noticing, watching
from headway.api.attention import FEW, Attention, Level, bundled
from headway.api.watching import MOST, Watch
from headway.engine.slots.counts import Overshoot
from headway.engine.tickets import names_text
from headway.store.records import NewJob
from headway.testing import World
from tests.engine.kit import takes


class Seen(World):
    """A world, and what a server would say of it."""

    def __enter__(self) -> Seen:
        super().__enter__()
        self.applications: list[Any] = []
        app = self.app
        self.site = SimpleNamespace(app=app, engine=app.engine, store=app.store, now=app.now,
                                    disk=".", applications=self.applications)  # fmt: skip
        self.watch = Watch(self.site)  # type: ignore[arg-type]
        return self

    def answer(self, tenant: str | None = None) -> dict[str, Any]:
        """As it is now, and not a moment ago."""
        self.watch._known.clear()
        self.watch._noticer._sight = None
        self.watch._noticer._failures.clear()
        return self.watch.answer(tenant)

    def items(self, tenant: str | None = None) -> dict[str, dict[str, Any]]:
        """By kind and name."""
        found = {}
        for each in self.answer(tenant)["items"]:
            if each["subject"]["kind"] != "disk":  # that is the machine's own affair
                found[f"{each['kind']} {each['subject']['name']}".strip()] = each
        return found


@pytest.fixture
def world(app: App) -> Iterator[Seen]:
    @app.job(type="works")
    async def works() -> None:
        await takes(30)

    @app.job(type="fails", retries=0)
    def fails() -> None:
        raise Fail("there is no such page")

    @app.job(type="cool")
    def cool() -> None:
        raise Pushback(status=429, retry_after=60)

    @app.job(type="banned")
    def banned() -> None:
        raise Pushback(status=412, ban=True)

    @app.job(type="wreck", retries=9, retry_delay=0.1)
    def wreck() -> None:
        raise ConnectionError("refused")

    app.upstream("learns.example", learn=True)
    app.upstream("frail.example", breaker=True)
    with Seen(app) as made:
        yield made


def put(world: Seen, type: str, upstream: str | None = None, tenant: str = "") -> int:
    names = None if upstream is None else names_text((upstream,))
    return world.app.enqueue(
        NewJob(type, "{}", created_at=world.now, upstreams=names, tenant=tenant)
    ).id


def test_when_all_is_well_nothing_is_said(world: Seen) -> None:
    put(world, "works", "x.example")
    world.run_for(1)
    assert world.items() == world.items("acme") == {}


def test_what_operators_have_stopped(world: Seen) -> None:
    world.app.pause("all")
    world.app.pause("lane:slow")
    world.app.pause("upstream:x.example")
    world.app.close_until("upstream:y.example", world.now + 3_600)
    world.app.close_until("upstream:z.example", world.now + 3_600, "they move house")
    found = world.items()
    assert set(found) == {"queue_paused", "paused slow", "paused x.example",
                          "upstream_closed y.example", "upstream_closed z.example"}  # fmt: skip
    assert found["queue_paused"]["level"] == "warn"
    closed = found["upstream_closed z.example"]
    assert (closed["level"], closed["values"]["cause"]) == ("info", "other")
    assert closed["values"]["why"] == "they move house"
    assert closed["until"] > closed["since"]
    assert found["upstream_closed y.example"]["values"]["cause"] == "operator"
    assert set(world.items("acme")) == {"queue_paused"}
    world.app.resume("all")
    assert world.items("acme") == {}


def test_what_upstreams_have_said(world: Seen) -> None:
    put(world, "cool", "cool.example")
    put(world, "banned", "strict.example")
    for _ in range(2):
        put(world, "wreck", "frail.example")
    put(world, "cool", "learns.example")
    world.run_for(3)
    put(world, "works", "strict.example")
    world.run_for(1)
    found = world.items()
    cool = found["upstream_closed cool.example"]
    assert (cool["level"], cool["values"]["cause"], cool["values"]["status"]) == (
        "info", "pushback", 429
    )  # fmt: skip
    banned = found["upstream_closed strict.example"]
    assert (banned["level"], banned["values"]["cause"], banned["values"]["waiting"]) == (
        "warn", "ban", 2
    )  # fmt: skip
    assert banned["text"].startswith("strict.example is closed until 20")
    assert "412" in banned["text"]
    assert found["upstream_closed frail.example"]["values"]["cause"] == "breaker"
    held = found["upstream_holding learns.example"]
    assert held["values"]["cause"] in ("rate", "blocked", "ban")
    assert held["until"] is not None


def test_failures_of_the_last_hour_and_whose_they_are(world: Seen) -> None:
    for tenant in ("acme", "acme", "zeta"):
        put(world, "fails", tenant=tenant)
    world.run_for(1)
    (item,) = world.items().values()
    assert (item["kind"], item["values"]["type"], item["values"]["count"]) == (
        "jobs_failed", "fails", 3
    )  # fmt: skip
    assert "3 jobs of type fails failed in the last hour" in item["text"]
    assert "there is no such page" in item["text"]
    assert world.items("acme")["jobs_failed fails"]["values"]["count"] == 2
    assert world.items("nobody") == {}
    world.run_for("61m")
    assert world.items() == {}


def test_types_that_no_worker_knows(world: Seen) -> None:
    for tenant in ("acme", "zeta", "zeta"):
        put(world, "strange", "x.example", tenant)
    world.run_for(1)
    assert world.items()["unknown_type strange"]["values"] == {"type": "strange", "waiting": 3}
    assert world.items("acme")["unknown_type strange"]["values"]["waiting"] == 1
    assert world.items("nobody") == {}


def test_schedules_that_are_paused_late_or_fail(world: Seen) -> None:
    def schedule(name: str, type: str, tenant: str = "") -> None:
        call = NewJob(type, "{}", created_at=world.now, tenant=tenant, lane=name)
        world.app.schedule(name, call, "10m")

    schedule("nightly", "works", "acme")
    schedule("stuck", "works")
    schedule("broken", "fails")
    world.app.pause_schedule("nightly")
    world.app.pause("lane:stuck")
    (due_at,) = (row.next_due_at for row in world.app.schedules() if row.name == "stuck")
    assert due_at is not None
    world.run_until(due_at + 240)
    assert not {"schedule_late stuck", "schedule_failing broken"} & set(world.items())
    world.run_for("2h")
    found = world.items()
    late = found["schedule_late stuck"]
    assert (late["level"], late["values"]["name"]) == ("warn", "stuck")
    assert found["schedule_failing broken"]["values"]["count"] >= 3
    assert found["schedule_paused nightly"]["level"] == "info"
    assert set(world.items("acme")) == {"schedule_paused nightly"}


def test_what_is_counted_up_is_told_for_an_hour(world: Seen) -> None:
    brain = world.app.engine.brain  # type: ignore[union-attr]
    brain.meters.lost_lease()
    brain.slots.overshoot["x.example"] = Overshoot(outlived=2)
    assert world.items()["leases_lost"]["values"] == {"count": 1}
    assert world.items()["slots_outlived x.example"]["values"]["count"] == 2
    for _ in range(13):
        world.run_for("5m")
        world.watch._noticer.note()
    assert world.items() == {}
    brain.slots.overshoot["x.example"].outlived += 1
    assert world.items()["slots_outlived x.example"]["values"]["count"] == 1


def test_many_of_a_kind_are_one_sentence(world: Seen) -> None:
    for number in range(FEW + 27):
        world.app.close_until(f"upstream:n{number}.example", world.now + 900)
    found = world.items()
    assert list(found) == ["upstreams_closed"]
    assert found["upstreams_closed"]["values"]["count"] == FEW + 27
    assert found["upstreams_closed"]["of"] == ["upstream_closed"]
    assert found["upstreams_closed"]["text"].startswith(f"{FEW + 27} upstreams are closed: n")


def test_a_bundle_is_as_bad_as_the_worst_in_it() -> None:
    items = [Attention("a", Level.INFO, ("thing", str(n)), "") for n in range(FEW)]
    assert bundled("all", items, "{}: {}".format) == items
    items.append(Attention("a", Level.BAD, ("thing", "last"), ""))
    (one,) = bundled("all", items, "{}: {}".format)
    assert (one.level, one.text) == (Level.BAD, "11: 0, 1, 2, 3, 4 and 6 more")
    assert one.of == ("a",)


class Loud:
    """An application with much to say."""

    name = "loud"

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        for number in range(MOST + 5):
            yield Attention("noise", Level.INFO, ("noise", f"{number} of {tenant}"), "noise")
        yield Attention("fire", Level.BAD, ("house", ""), "it burns")


class Broken:
    name = "broken"

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        raise RuntimeError("a bug")


class Silent:
    """One that knows nothing of this."""

    name = "silent"


def test_applications_add_their_own_and_the_worst_is_first(world: Seen) -> None:
    world.applications += [Silent(), Loud(), Broken()]
    answer = world.answer("acme")
    assert [each["kind"] for each in answer["items"][:3]] == ["fire", "unknown", "noise"]
    assert answer["items"][2]["subject"]["name"].endswith("of acme")
    assert (len(answer["items"]), answer["more"]) == (MOST, 7)


def test_it_is_looked_at_once_in_a_moment(world: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.watch.answer(None)
    world.app.pause("all")
    assert world.watch.answer(None) is first
    monkeypatch.setattr(watching, "monotonic", lambda: 1e12)
    monkeypatch.setattr(noticing, "monotonic", lambda: 1e12)
    assert "queue_paused" in {each["kind"] for each in world.watch.answer(None)["items"]}


def test_who_has_just_changed_something_sees_it(
    world: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "monotonic", lambda: 1.0)
    monkeypatch.setattr(noticing, "monotonic", lambda: 1.0)
    first = world.watch.answer(None)
    assert world.watch.answer(None) is first
    world.app.by("token:ops").pause("all")
    assert "queue_paused" in {each["kind"] for each in world.watch.answer(None)["items"]}


@pytest.mark.parametrize(("free", "level"), [(50, None), (9, "warn"), (2, "bad")])
def test_a_disk_that_is_nearly_full(
    world: Seen, monkeypatch: pytest.MonkeyPatch, free: int, level: str | None
) -> None:
    usage = SimpleNamespace(total=1_000, free=10 * free)
    monkeypatch.setattr(noticing.psutil, "disk_usage", lambda _: usage)
    found = [each for each in world.answer()["items"] if each["kind"] == "disk_low"]
    assert [each["level"] for each in found] == ([] if level is None else [level])
    assert not any(each["kind"] == "disk_low" for each in world.answer("acme")["items"])


def test_a_store_in_trouble_is_told_without_asking_anybody(
    world: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.app.pause("all")
    world.applications.append(Broken())
    monkeypatch.setattr(world.app.engine.brain, "trouble", "it is at /secret/place")  # type: ignore[union-attr]
    monkeypatch.setattr(world.app.engine, "ask", None)
    assert "/secret/place" in world.items()["store_trouble"]["text"]
    (item,) = world.items("acme").values()
    assert (item["level"], item["values"]) == ("bad", {"why": ""})
    assert "secret" not in item["text"]
