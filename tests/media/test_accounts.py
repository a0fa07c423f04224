"""Accounts in the engine: sealed, used in turn, rested, checked every six hours, and told of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App
from headway.apps.media.accounts.checking import Answer, Checker, Visitor, judge
from headway.apps.media.accounts.gates import tool_of
from headway.apps.media.accounts.notifying import Notifier, event_of, meaning
from headway.apps.media.accounts.pool import Account, Heard, Word, usable_at
from headway.apps.media.accounts.register import CHECK_URLS, Accounts
from headway.apps.media.accounts.schedule import CHECK
from headway.apps.media.accounts.tables import ACCOUNTS_MIGRATION, PUT_ACCOUNT
from headway.core import Outcome, State
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.errors import SealedElsewhere
from headway.net.addresses import Allowed
from headway.net.redaction import redact
from headway.net.sealing import Vault, new_key
from headway.outcomes import Answered, Fail, Snooze, outcome_of_status
from headway.testing import World
from headway.testing.world import START_AT, VirtualEngine
from tests.engine.kit import takes

T = TypeVar("T")

# What the sites of this file answer, and what that says of an account.
WORDS = {200: Word.OK, 401: Word.REFUSED, 403: Word.REFUSED, 412: Word.PUSHBACK}
SITE = "bilibili.com"
NAV = CHECK_URLS[SITE]
HOUR = 3_600.0
LOGGED_IN = Answer(200, b'{"code": 0, "data": {"isLogin": true}}')
LOGGED_OUT = Answer(200, b'{"code": -101, "data": {"isLogin": false}}')
DOWN = Answer(None, error="ConnectError: it is down")


def cookies(value: str = "s3cr3t-of-one", expires: int = 1_900_000_000) -> str:
    return f".{SITE}\tTRUE\t/\tTRUE\t{expires}\tSESSDATA\t{value}\n"


class AccountsWorld(World):
    """A site that answers checks and downloads as it is told."""

    def __init__(self, **more: Any) -> None:
        super().__init__(App(), **more)
        self.answer: Callable[[str], Answer] = lambda _: LOGGED_IN
        self.visits: list[tuple[float, str, str]] = []
        self.statuses: list[int] = []  # of downloads, one after the other; then 200
        self.used: list[tuple[float, str]] = []
        self.told: list[dict[str, Any]] = []
        self.receiver: Callable[[], Outcome] = Outcome.ok
        self.notify_url: str | None = "https://ops.example/hook"
        self.vault = Vault([new_key()], "the test")
        self._prepared = False

    def _start(self) -> VirtualEngine:
        if not self._prepared:
            self._prepared = True
            self._prepare()
        return super()._start()

    def _prepare(self) -> None:
        app = self.app
        app.store.install("media_accounts", (ACCOUNTS_MIGRATION,))
        self.accounts = Accounts(app.store, lambda: self.vault)
        self.checker = Checker(self.accounts, self._visit)
        self.checker.register(app)
        self.notifier = Notifier(self.accounts, lambda: self.notify_url, Allowed(()))
        self.notifier.post = self._hook
        self.notifier.register(app)
        tools, lane = (tool_of(SITE),), "requires_cookie"
        self.downloads = app.job(type="download", tools=tools, lane=lane)(self._download)
        app.registry.types["download"].ended = lambda _, change, __: self.accounts.let_go(
            int(str(change.ticket.id))
        )
        app.settings.declare("code", "lane", lane, {"limit": 1})
        app.preparing.append(self._meet)

    def _meet(self, brain: Brain) -> None:
        self.accounts.meet(brain)
        self.checker.meet(brain)
        self.notifier.meet(brain)

    async def _visit(self, url: str, header: str) -> Answer:
        self.visits.append((self.now, url, header))
        await takes(0.5)
        return self.answer(header)

    async def _hook(self, _: str, body: bytes, headers: dict[str, str], __: float) -> Outcome:
        outcome = self.receiver()
        about = {"id": headers["webhook-id"], "signature": headers.get("webhook-signature")}
        self.told.append({**json.loads(body), **about, "got": outcome.kind})
        return outcome

    async def _download(self) -> Answered:
        number = job.id
        account = self.turn(lambda now: self.accounts.pick(SITE, now, holder=number))
        if account is None:
            raise Snooze(1)
        self.used.append((self.now - START_AT, account.name))
        await takes(10)
        status = self.statuses.pop(0) if self.statuses else 200
        heard = Heard(WORDS[status], status)
        job.with_end(lambda now: self.accounts.given_back(number, heard, now))
        return Answered(outcome_of_status(status))

    # ------------------------------------------------------------------ what tests do

    def turn(self, call: Callable[[float], T]) -> T:
        engine = self.app.engine
        assert engine is not None
        return engine.ask(call).result()

    def add(self, name: str = "one", **more: Any) -> Account:
        facts = {"site": SITE, "cookies_text": cookies(f"s3cr3t-of-{name}"), "check_url": None}
        return self.turn(lambda now: self.accounts.add(name, now=now, **{**facts, **more}))

    def hear(self, id: int, heard: Heard) -> None:
        self.turn(lambda now: self.accounts.checked(id, heard, now))

    def now_of(self, id: int) -> Account:
        found = self.accounts.get(id)
        assert found is not None
        return found

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.app.store.rows(query)

    def checks_open(self) -> int:
        ((found,),) = self.rows(
            f"select count(*) from jobs where type = '{CHECK}' "
            "and state not in ('completed', 'failed', 'cancelled')"
        )
        return int(found)

    def trail(self, like: str = "account_%") -> list[str]:
        return [event for (event,) in self.rows(
            f"select event from events where event like '{like}' order by id")]  # fmt: skip

    def gate(self) -> tuple[float, str]:
        """For how long no download may go, and why."""
        engine = self.app.engine
        assert engine is not None
        door = engine.brain.core.gates.get("tool", tool_of(SITE)).door
        return max(door.closed_until - self.now, 0.0), door.closed_why

    def download(self, many: int = 1) -> list[int]:
        return [self.downloads.enqueue().id for _ in range(many)]

    def state(self, number: int) -> str:
        row = self.app.store.job(number)
        assert row is not None
        return row.state


@pytest.fixture
def world(worlds: None) -> Iterator[AccountsWorld]:  # noqa: ARG001 - on every kind of store
    with AccountsWorld() as world:
        assert isinstance(world, AccountsWorld)
        yield world


# ---------------------------------------------------------------------- secrets


def test_cookies_are_sealed_and_come_back(world: AccountsWorld) -> None:
    one = world.add(cookies_text=cookies("s3cr3t-value"))
    (found,) = world.accounts.cookies_of(one.id)
    assert (found.name, found.value) == ("SESSDATA", "s3cr3t-value")
    assert redact("it sent s3cr3t-value to them") == "it sent [redacted] to them"
    world.run_for("1d")
    for table in ("media_accounts", "jobs", "events"):
        assert "s3cr3t" not in str(world.rows(f"select * from {table}"))
    assert "s3cr3t" not in repr(one)
    assert one.sealed not in repr(one)


def test_they_open_for_their_own_account_only(world: AccountsWorld) -> None:
    one, two = world.add("one"), world.add("two")
    stolen = world.now_of(two.id)._replace(sealed=one.sealed)
    world.accounts.accounts = {**world.accounts.accounts, two.id: stolen}
    with pytest.raises(SealedElsewhere):
        world.accounts.cookies_of(two.id)


# ---------------------------------------------------------------------- operators


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"name": "one"}, "there is an account one at bilibili.com already"),
        ({"name": ""}, "a name has 1 to 100"),
        ({"name": "a\nb"}, "a name has 1 to 100"),
        ({"site": "https://x"}, "this is no site"),
        ({"cookies_text": "x"}, "cookie 1 has no"),
        ({"cookies_text": cookies(expires=1_000)}, "have expired already"),
        ({"check_url": "https://evil.example/"}, "must be at bilibili.com"),
        ({"check_url": "https://bilibili.com@evil.example/"}, "must be at bilibili.com"),
        ({"check_url": "https://u:p@bilibili.com/"}, "must be at bilibili.com"),
        ({"check_url": "ftp://bilibili.com/"}, "is no address"),
        ({"check_url": "https://[bilibili.com/"}, "is no address"),
    ],
)
def test_what_cannot_be_added(world: AccountsWorld, facts: dict[str, Any], said: str) -> None:
    world.add("one")
    with pytest.raises(ValueError, match=said):
        world.add(**{"name": "two", **facts})
    assert len(world.accounts.list()) == 1


def test_what_is_done_is_stored_and_in_the_trail(world: AccountsWorld) -> None:
    one = world.add()
    assert one.check_url == NAV
    world.turn(lambda now: world.accounts.change(one.id, now, name="other", check_url=""))
    world.turn(lambda now: world.accounts.change(one.id, now, enabled=False))
    before = world.accounts.list()
    assert (before[0].name, before[0].check_url, before[0].enabled) == ("other", None, 0)
    world.restart()
    assert world.accounts.list() == before
    world.turn(lambda now: world.accounts.remove(one.id, now))
    world.restart()
    assert world.accounts.list() == ()
    assert world.trail() == [
        "account_added", "account_changed", "account_changed", "account_removed",
    ]  # fmt: skip
    subjects = world.rows("select distinct subject from events where event = 'account_removed'")
    assert subjects == [("account:other@bilibili.com",)]


def test_new_cookies_are_checked_at_once(world: AccountsWorld) -> None:
    world.answer = lambda header: LOGGED_IN if "fresh" in header else LOGGED_OUT
    one = world.add()
    world.run_for("1m")
    assert world.now_of(one.id).status == "expired"
    text = cookies("s3cr3t-and-fresh")
    changed = world.turn(lambda now: world.accounts.replace_cookies(one.id, text, now))
    assert changed.status == "unchecked"
    world.run_for("1m")
    assert world.now_of(one.id).status == "healthy"
    assert len(world.visits) == 2
    assert world.checks_open() == 1


def test_what_a_check_says_of_the_cookies_before_is_not_held_against_new_ones(
    world: AccountsWorld,
) -> None:
    world.answer = lambda header: LOGGED_IN if "fresh" in header else LOGGED_OUT
    one = world.add()
    world.run_for(0.2)  # it is being asked
    assert len(world.visits) == 1
    world.turn(lambda now: world.accounts.replace_cookies(one.id, cookies("fresh-s3cr3t"), now))
    world.run_for("1m")
    assert world.trail("account_expired") == []
    assert world.now_of(one.id).status == "healthy"
    assert len(world.visits) == 2


# ---------------------------------------------------------------------- in use


def test_accounts_take_turns(world: AccountsWorld) -> None:
    world.add("one")
    world.add("two")
    world.download(6)
    world.run_for("10m")
    names = [name for _, name in world.used]
    assert sorted(names) == ["one"] * 3 + ["two"] * 3
    assert [each.uses for each in world.accounts.list()] == [3, 3]
    assert [world.accounts.in_use(each.id) for each in world.accounts.list()] == [0, 0]


def test_a_job_that_ends_in_any_way_holds_no_account(world: AccountsWorld) -> None:
    one = world.add()
    (number,) = world.download()
    world.run_for("1s")
    assert world.accounts.in_use(one.id) == 1
    engine = world.app.engine
    assert engine is not None
    world.turn(lambda now: engine.brain.controls.steer("cancel", number, (), now, "operator"))
    world.run_for("1s")
    assert world.accounts.in_use(one.id) == 0
    world.download()
    world.run_for("1s")
    world.crash()
    world.restart()
    world.run_for("1m")
    assert world.accounts.in_use(one.id) == 0


def test_who_picks_again_lets_go_of_what_he_held(world: AccountsWorld) -> None:
    one = world.add()
    assert world.turn(lambda now: world.accounts.pick(SITE, now, holder=7)) is not None
    assert world.accounts.in_use(one.id) == 1
    found = world.turn(lambda now: world.accounts.pick(SITE, now, [one.id], holder=7))
    assert found is None
    assert world.accounts.in_use(one.id) == 0


def test_one_that_is_healed_does_not_have_to_make_up_for_its_absence(world: AccountsWorld) -> None:
    world.answer = lambda _: DOWN
    world.add("one")
    world.download(9)
    world.run_for("1h")
    two = world.add("two")
    world.hear(two.id, Heard(Word.INVALID))
    world.hear(two.id, Heard(Word.VALID))
    world.download(6)
    world.run_for("1h")
    assert [name for _, name in world.used[9:]].count("two") == 3


def test_a_refusal_of_the_cookies_before_is_no_strike(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    world.statuses = [403]
    world.download()
    world.run_for("1s")
    world.turn(lambda now: world.accounts.replace_cookies(one.id, cookies("fresh-s3cr3t"), now))
    world.run_for("1m")
    assert (world.now_of(one.id).strikes, world.now_of(one.id).failures) == ("[]", 0)


def test_three_refusals_disable_and_downloads_wait_until_it_is_healed(
    world: AccountsWorld,
) -> None:
    world.answer = lambda _: DOWN
    one = world.add()
    world.statuses = [403, 401, 403]
    numbers = world.download(4)
    world.run_for("1m")
    assert world.now_of(one.id).status == "disabled"
    wait_s, why = world.gate()
    assert wait_s == float("inf")
    assert why == "no usable account for bilibili.com: add a cookie, or enable one"
    assert [world.state(number) for number in numbers[3:]] == ["queued"]
    world.restart()
    assert world.gate()[1] == why
    world.answer = lambda _: LOGGED_IN
    world.run_for("7h")  # the next check
    assert world.now_of(one.id).status == "healthy"
    assert world.gate() == (0.0, "")
    assert world.state(numbers[3]) == "completed"
    assert world.trail("account_disabled") == ["account_disabled"]


def test_pushback_rests_all_accounts_and_ends_by_itself(world: AccountsWorld) -> None:
    world.add("one")
    world.add("two")
    world.run_for("1m")
    world.statuses = [412, 412]
    numbers = world.download(3)
    world.run_for("1m")
    wait_s, why = world.gate()
    assert why == "all 2 accounts of bilibili.com cool down after 412"
    assert 500 < wait_s < 600
    world.restart()
    assert world.gate()[1] == why
    assert len(world.used) == 2
    world.run_for("1h")
    assert [world.state(number) for number in numbers] == ["completed"] * 3
    gap_s = world.used[2][0] - world.used[1][0]
    assert 590 < gap_s < 610
    assert world.gate()[0] == 0.0


def test_another_account_opens_the_gate_at_once(world: AccountsWorld) -> None:
    one = world.add("one")
    world.run_for("1m")
    world.hear(one.id, Heard(Word.PUSHBACK, 429))
    assert world.gate()[1] == "the only account of bilibili.com cools down after 429"
    (number,) = world.download()
    world.run_for("1m")
    assert world.state(number) == "queued"
    world.add("two")
    world.run_for("1m")
    assert world.state(number) == "completed"
    assert [name for _, name in world.used] == ["two"]


def test_a_shorter_closure_takes_the_place_of_a_longer_one(world: AccountsWorld) -> None:
    one = world.add("one")
    world.hear(one.id, Heard(Word.INVALID))
    assert world.gate()[0] == float("inf")
    two = world.add("two")
    world.hear(two.id, Heard(Word.PUSHBACK, 412))
    assert world.gate()[0] == 600.0
    world.turn(lambda now: world.accounts.remove(two.id, now))
    assert world.gate()[0] == float("inf")
    world.turn(lambda now: world.accounts.remove(one.id, now))
    assert world.gate() == (0.0, "")  # a site without accounts needs none


def test_the_gate_opens_sooner_when_one_is_back_that_rests_less(world: AccountsWorld) -> None:
    one, two = world.add("one"), world.add("two")
    world.hear(one.id, Heard(Word.PUSHBACK, 412))
    world.hear(two.id, Heard(Word.PUSHBACK, 429, retry_after_s=7_000.0))
    assert world.gate() == (600.0, "all 2 accounts of bilibili.com cool down after 412 and 429")
    world.hear(one.id, Heard(Word.INVALID))
    assert world.gate()[0] == 7_000.0
    world.turn(lambda now: world.accounts.change(one.id, now, enabled=True))
    assert world.gate()[0] == 600.0


def test_an_app_may_need_an_account_where_there_is_none(world: AccountsWorld) -> None:
    world.accounts.gates.needed = lambda _: True
    world.turn(lambda now: world.accounts.gates.sync_gate(SITE, now))
    (number,) = world.download()
    world.run_for("1h")
    assert world.state(number) == "queued"
    world.add()
    world.run_for("1m")
    assert world.state(number) == "completed"


def test_what_an_operator_has_closed_stays_closed(world: AccountsWorld) -> None:
    engine = world.app.engine
    assert engine is not None
    gates = engine.brain.core.gates
    world.turn(
        lambda now: gates.close("tool", tool_of(SITE), now, until=now + 9_999, why="by hand")
    )
    one = world.add()
    world.hear(one.id, Heard(Word.VALID))
    assert world.gate() == (9_999.0, "by hand")


def test_whoever_enables_one_vouches_for_it(world: AccountsWorld) -> None:
    world.answer = lambda _: DOWN
    one = world.add()
    world.hear(one.id, Heard(Word.INVALID))
    world.turn(lambda now: world.accounts.change(one.id, now, enabled=True))
    assert world.now_of(one.id).status == "unchecked"
    assert world.gate()[0] == 0.0


# ---------------------------------------------------------------------- checks


def gaps(world: AccountsWorld) -> list[float]:
    return [after - before for (before, *_), (after, *_) in pairwise(world.visits)]


def test_an_account_is_checked_at_once_and_then_every_six_hours(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    assert world.now_of(one.id).status == "healthy"
    assert world.visits[0][1:] == (NAV, "SESSDATA=s3cr3t-of-one")
    world.run_for("7d")
    assert 26 <= len(world.visits) <= 30
    assert all(5.3 * HOUR < gap < 6.7 * HOUR for gap in gaps(world))
    assert len({round(gap) for gap in gaps(world)}) > 20  # never at the same time of day
    assert world.checks_open() == 1


def test_lesson_13_a_check_that_cannot_be_made_changes_nothing(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    before = world.now_of(one.id)
    for answer in (DOWN, Answer(500), Answer(302), Answer(404), Answer(200, b"<html>"),
                   Answer(200, b'{"code": 0}'), Answer(403)):  # fmt: skip
        world.answer = lambda _, answer=answer: answer  # type: ignore[misc]
        world.run_for("12h")
        assert world.now_of(one.id) == before
        assert world.checks_open() == 1


def test_the_chain_goes_on_however_a_check_ends(world: AccountsWorld) -> None:
    def fail(_: str) -> Answer:
        raise ValueError("something of our own is broken")

    one = world.add()
    world.answer = fail
    world.run_for("1d")
    assert world.checks_open() == 1
    engine = world.app.engine
    assert engine is not None
    number = world.checker.schedule.jobs[one.id]
    world.turn(lambda now: engine.brain.controls.steer("cancel", number, (), now, "operator"))
    world.run_for("1s")
    assert world.checks_open() == 1
    world.answer = lambda _: LOGGED_IN
    world.run_for("7h")
    assert world.now_of(one.id).status == "healthy"


def test_a_restart_keeps_the_chain(world: AccountsWorld) -> None:
    world.add("one")
    world.add("two")
    for wait_s in (0.0, 0.2, 60.0, 3 * HOUR, 7 * HOUR):
        world.run_for(wait_s)
        world.crash()
        world.restart()
        assert world.checks_open() == 2
    world.run_for("1d")
    assert world.checks_open() == 2
    assert all(each.status == "healthy" for each in world.accounts.list())


def test_pushback_of_a_check_closes_the_site_and_says_nothing_of_the_account(
    world: AccountsWorld,
) -> None:
    one = world.add()
    world.answer = lambda _: Answer(412, retry_after_s=1_800.0)
    world.run_for("10m")
    assert len(world.visits) == 1
    assert world.now_of(one.id).status == "unchecked"
    world.answer = lambda _: LOGGED_IN
    world.run_for("30m")
    assert world.now_of(one.id).status == "healthy"


def test_now_please(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1h")
    state = world.turn(lambda now: world.checker.schedule.check_now(one.id, now))
    assert state in (State.PENDING, State.QUEUED)
    world.run_for("1s")
    assert len(world.visits) == 2
    world.run_for("1h")
    assert len(world.visits) == 2
    assert world.checks_open() == 1


def test_one_that_is_not_wanted_is_not_checked(world: AccountsWorld) -> None:
    one = world.add()
    for wait_s in (0.0, 0.2, 60.0):
        world.run_for(wait_s)
        world.turn(lambda now: world.accounts.change(one.id, now, enabled=False))
        world.run_for(1)
        assert world.checks_open() == 0
        many = len(world.visits)
        world.run_for("1d")
        assert len(world.visits) == many
        world.turn(lambda now: world.accounts.change(one.id, now, enabled=True))
    world.run_for("1m")
    assert world.checks_open() == 1
    world.turn(lambda now: world.accounts.remove(one.id, now))
    world.run_for("1d")
    assert world.checks_open() == 0


def test_disabled_and_enabled_in_one_turn(world: AccountsWorld) -> None:
    one = world.add()

    def both(now: float) -> None:
        world.accounts.change(one.id, now, enabled=False)
        world.accounts.change(one.id, now, enabled=True)

    for wait_s in (0.0, 0.2, 60.0, 7 * HOUR):
        world.run_for(wait_s)
        world.turn(both)
        world.run_for(2)
        assert world.checks_open() == 1
        assert world.visits[-1][0] > world.now - 2.5  # as whoever enables one wants it
    assert world.now_of(one.id).status == "healthy"


def test_a_check_that_is_retried_by_hand_is_not_the_second(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    engine = world.app.engine
    assert engine is not None
    number = world.checker.schedule.jobs[one.id]
    for verb in ("cancel", "retry"):
        world.turn(lambda now, verb=verb: engine.brain.controls.steer(verb, number, (), now, "me"))  # type: ignore[misc]
        world.run_for("1s")
    assert world.checks_open() == 1
    assert len(world.visits) == 2  # as somebody wanted


def test_an_account_without_its_job_has_one_after_a_restart(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    world.crash()
    world.app.store.write([(PUT_ACCOUNT, [one._replace(id=one.id + 1, name="two")])])
    world.restart()
    world.run_for("1s")
    assert world.checks_open() == 2


def test_cookies_that_have_expired_are_not_asked_about(world: AccountsWorld) -> None:
    ends_at = int(world.now + HOUR)
    one = world.add(cookies_text=cookies(expires=ends_at))
    world.run_until(ends_at + 5.0)
    assert world.now_of(one.id).status == "expired"
    assert "have expired" in world.now_of(one.id).reason
    assert len(world.visits) == 1


def test_without_a_check_url_its_expiry_is_looked_at(world: AccountsWorld) -> None:
    ends_at = int(world.now + 2.5 * 86_400)
    one = world.add(check_url="", cookies_text=cookies(expires=ends_at))
    world.run_for("2d")
    assert world.now_of(one.id).status == "unchecked"
    world.run_until(ends_at + 5.0)
    assert world.now_of(one.id).status == "expired"
    assert world.visits == []
    assert [each["type"] for each in world.told] == ["account.expired"]


def test_cookies_that_cannot_be_opened_are_said_so_and_the_chain_goes_on(
    world: AccountsWorld,
) -> None:
    one = world.add()
    world.vault = Vault([new_key()], "another")
    world.run_for("1m")
    assert world.now_of(one.id).status == "unchecked"
    assert world.visits == []
    assert world.checks_open() == 1
    (said,) = world.rows("select error from jobs where state = 'failed'")
    assert "missing from another" in said[0]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(200), Word.VALID),
        (Answer(204), Word.VALID),
        (Answer(401), Word.INVALID),
        (Answer(403), Word.INVALID),
        (Answer(302), Word.UNKNOWN),
        (Answer(404), Word.UNKNOWN),
        (Answer(412), Word.PUSHBACK),
        (Answer(429), Word.PUSHBACK),
        (Answer(503), Word.TROUBLE),
        (DOWN, Word.TROUBLE),
    ],
)
def test_what_any_site_says(answer: Answer, word: Word) -> None:
    assert judge("video.example", "https://video.example/me", answer).word is word


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (LOGGED_IN.body, Word.VALID),
        (LOGGED_OUT.body, Word.INVALID),
        (b'{"code": 0, "data": {"isLogin": false}}', Word.INVALID),
        (b'{"code": -101}', Word.INVALID),
        (b'{"code": -412}', Word.PUSHBACK),
        (b'{"code": -799}', Word.PUSHBACK),
        (b'{"code": 0, "data": {"isLogin": "yes"}}', Word.UNKNOWN),
        (b'{"code": 0, "data": []}', Word.UNKNOWN),
        (b"[]", Word.UNKNOWN),
        (b"\xff", Word.UNKNOWN),
        (b"", Word.UNKNOWN),
    ],
)
def test_what_bilibili_says(body: bytes, word: Word) -> None:
    assert judge(SITE, NAV, Answer(200, body)).word is word


# ---------------------------------------------------------------------- anything at all

ANSWERS = (LOGGED_IN, LOGGED_OUT, DOWN, Answer(412), Answer(302))
DEEDS = ("add", "remove", "enable", "disable", "replace", "check", "answer", "hear", "crash")


def do(world: AccountsWorld, deed: str, number: int) -> None:
    accounts = world.accounts
    some = accounts.list()
    if deed == "crash":
        world.crash()
        world.restart()
    elif deed == "answer":
        world.answer = lambda _: ANSWERS[number % len(ANSWERS)]
    elif deed == "add" or not some:
        world.add(f"n{len(some)}-{world.now}-{number}", check_url=None if number % 3 else "")
    else:
        id = some[number % len(some)].id
        deeds: dict[str, Callable[[float], Any]] = {
            "remove": lambda now: accounts.remove(id, now),
            "enable": lambda now: accounts.change(id, now, enabled=True),
            "disable": lambda now: accounts.change(id, now, enabled=False),
            "replace": lambda now: accounts.replace_cookies(id, cookies(f"s3cr3t-{number}"), now),
            "check": lambda now: world.checker.schedule.check_now(id, now),
            "hear": lambda now: accounts.checked(id, Heard(list(Word)[number % len(Word)]), now),
        }
        world.turn(deeds[deed])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(DEEDS),
            st.integers(0, 100),
            st.sampled_from([0.0, 0.2, 1.0, 700.0, 8 * HOUR]),
        ),
        max_size=25,
    )
)
def test_whatever_happens_each_has_one_check_and_the_gate_is_right(
    steps: list[tuple[str, int, float]],
) -> None:
    with AccountsWorld() as world:
        assert isinstance(world, AccountsWorld)
        for deed, number, wait_s in steps:
            do(world, deed, number)
            at = usable_at(world.accounts.list(), SITE, world.now)
            waits = bool(world.accounts.list()) and at != world.now
            assert (world.gate()[0] > 0) == waits
            if waits and at is not None:
                assert world.gate()[0] == pytest.approx(at - world.now)
            world.run_for(wait_s)
        world.run_for("1s")  # what is on its way is here
        wanted = sorted(f"account:{each.id}" for each in world.accounts.list() if each.enabled)
        keys = world.rows(
            f"select key from jobs where type = '{CHECK}' "
            "and state not in ('completed', 'failed', 'cancelled') order by key"
        )
        assert [key for (key,) in keys] == wanted
        before = world.accounts.list()
        world.restart()
        assert world.accounts.list() == before


# ---------------------------------------------------------------------- being told


def test_each_transition_is_told_once(world: AccountsWorld) -> None:
    one = world.add()
    world.run_for("1m")
    world.answer = lambda _: LOGGED_OUT
    world.run_for("2d")
    world.answer = lambda _: LOGGED_IN
    world.run_for("2d")
    for _ in range(4):
        world.hear(one.id, Heard(Word.REFUSED, 403))
    world.hear(one.id, Heard(Word.PUSHBACK, 412))
    world.run_for("1m")
    types = [each["type"] for each in world.told]
    assert types == ["account.healthy", "account.expired", "account.healthy", "account.disabled"]
    assert len({each["id"] for each in world.told}) == 4
    ours = ("type", "account", "site", "reason")
    assert {name: world.told[1][name] for name in ours} == {
        "type": "account.expired", "account": "one", "site": SITE,
        "reason": "the site says that it is not logged in; replace its cookies",
    }  # fmt: skip


def test_a_message_is_signed_if_there_is_a_secret(world: AccountsWorld) -> None:
    world.notifier._sign = lambda id, at, body: f"v1,{id}.{at}.{body.decode()}"
    one = world.add(check_url="")
    world.hear(one.id, Heard(Word.INVALID))
    world.run_for("1s")
    (told,) = world.told
    signed = json.loads(told["signature"].split(".", 2)[2])
    assert signed["type"] == "account.expired"
    assert told["signature"].startswith(f"v1,{told['id']}.{int(START_AT)}.")


def test_a_receiver_that_is_away_is_told_when_it_is_back(world: AccountsWorld) -> None:
    world.answer = lambda _: LOGGED_OUT
    world.receiver = lambda: Outcome.failed("it is down", upstream_fault=True)
    world.add()
    world.run_for("3h")
    many = len(world.told)
    assert 5 < many < 20
    world.restart()
    world.receiver = Outcome.ok
    world.run_for("1d")
    assert [each["got"] for each in world.told[many:]] == ["ok"]
    assert len({each["id"] for each in world.told}) == 1


def test_it_is_told_with_the_commit_or_not_at_all(world: AccountsWorld) -> None:
    one = world.add()
    world.hear(one.id, Heard(Word.INVALID))
    world.crash()
    world.restart()
    world.run_for("1s")
    assert [each["type"] for each in world.told][:1] == ["account.expired"]
    world.run_for("1d")
    assert [each["type"] for each in world.told].count("account.expired") == 1


def test_nobody_is_told_who_does_not_want_it(world: AccountsWorld) -> None:
    world.notify_url = None
    one = world.add()
    world.hear(one.id, Heard(Word.INVALID))
    world.run_for("1d")
    assert world.told == []
    assert world.rows("select id from jobs where type = 'media.notify'") == []


def test_what_is_news() -> None:
    with AccountsWorld() as world:
        assert isinstance(world, AccountsWorld)
        row = world.add()

    def told(before: str, after: str) -> str | None:
        return event_of(row._replace(status=before), row._replace(status=after))

    assert told("healthy", "expired") == "account.expired"
    assert told("disabled", "healthy") == told("unchecked", "healthy") == "account.healthy"
    assert told("cooling", "healthy") is None
    assert told("healthy", "cooling") is None
    assert told("expired", "unchecked") is None
    assert event_of(None, row) is event_of(row, None) is None


@pytest.mark.parametrize(
    ("status", "kind", "fatal"),
    [(204, "ok", False), (410, "failed", True), (404, "failed", False), (429, "pushback", False),
     (302, "failed", False), (500, "failed", False)],
)  # fmt: skip
def test_what_a_receiver_says(status: int, kind: str, fatal: bool) -> None:
    outcome = meaning(status, None)
    assert (outcome.kind, outcome.fatal) == (kind, fatal)


# ---------------------------------------------------------------------- over the wire


class Place(ThreadingHTTPServer):
    """A site and a receiver: it answers with what its path says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Asked(BaseHTTPRequestHandler):
    server: Place

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers, body))
        status, _, length = self.path.strip("/").partition("/")
        self.send_response(int(status))
        self.send_header("content-length", length or "2")
        if status == "429":
            self.send_header("retry-after", "7")
        if status == "302":
            self.send_header("location", "/200")
        self.end_headers()
        self.wfile.write(b"x" * int(length or 2))

    do_GET = do_POST = answer  # noqa: N815 - the names that the base class looks for

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as place:
        thread = Thread(target=place.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield place
        place.shutdown()
        thread.join()


def test_a_check_over_the_wire(place: Place) -> None:
    async def ask() -> list[Answer]:
        visitor = Visitor(Allowed(("127.0.0.1",)), {"User-Agent": "desktop"}, lambda: 0.0)
        try:
            paths = ("/200", "/302", "/429", "/200/400000")
            return [await visitor.visit(place.url + path, "a=b; c=d") for path in paths]
        finally:
            await visitor.close()

    answers = asyncio.run(ask())
    assert [each.status for each in answers] == [200, 302, 429, 200]
    assert answers[0].body == b"xx"
    assert answers[2].retry_after_s == 7.0
    assert answers[3].body == b""  # too long to be read
    assert [path for _, path, _, _ in place.asked] == ["/200", "/302", "/429", "/200/400000"]
    assert {headers["cookie"] for _, _, headers, _ in place.asked} == {"a=b; c=d"}
    assert {headers["user-agent"] for _, _, headers, _ in place.asked} == {"desktop"}


def test_a_check_goes_nowhere_that_it_may_not_and_says_what_is_down(place: Place) -> None:
    async def ask(url: str, *allowed: str) -> Answer:
        visitor = Visitor(Allowed(allowed), {}, lambda: 0.0)
        try:
            return await visitor.visit(url, "a=s3cr3t-value")
        finally:
            await visitor.close()

    with pytest.raises(Fail, match="may not be called"):
        asyncio.run(ask(place.url + "/200"))
    assert place.asked == []
    down = asyncio.run(ask("http://127.0.0.1:1/", "127.0.0.1"))
    assert down.status is None
    assert "ConnectError" in down.error
    assert "s3cr3t" not in down.error


def test_a_message_over_the_wire(place: Place) -> None:
    async def post(notifier: Notifier, path: str) -> Outcome:
        try:
            return await notifier._post(place.url + path, b"{}", {"webhook-id": "7"}, 0.0)
        finally:
            await notifier.close()

    with AccountsWorld() as world:
        assert isinstance(world, AccountsWorld)
        allowed = Notifier(world.accounts, lambda: None, Allowed(("127.0.0.1",)))
        assert asyncio.run(post(allowed, "/200")).kind == "ok"
        assert asyncio.run(post(allowed, "/429")).retry_after_s == 7.0
        with pytest.raises(Fail, match="may not be called"):
            asyncio.run(post(Notifier(world.accounts, lambda: None, Allowed(())), "/200"))
    (command, _, headers, body), _ = place.asked
    assert (command, headers["webhook-id"], body) == ("POST", "7", b"{}")
