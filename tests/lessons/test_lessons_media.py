"""Lessons 1 to 16 of docs/lessons.md where they concern the archive: how its predecessors failed,
shown not to happen here. Number 10 is about the page.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headway.apps.media.accounts.checking import Answer as CheckAnswer
from headway.apps.media.accounts.pool import Heard, Word
from headway.apps.media.fetcher.protocol import FailureKind
from headway.apps.media.jobs import BY_CLOCK, DOWNLOAD, LANE, new_request
from headway.apps.media.reconciling import RECONCILE
from headway.apps.media.running import Failure
from headway.apps.media.settings import MediaSettings, media_settings
from headway.engine.hands.processes import ProgramTimeout
from headway.store.records import NewJob
from tests.media.archive_checks import check_cursor, check_line, jobs_of, payload, permits
from tests.media.media_world import MediaWorld, failure, here
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

HOST = "videos.example"
URL = f"https://{HOST}/list"
TOKEN = "secret-token-1"


def ids(count: int, first: int = 0) -> list[str]:
    return [f"v{number:04}" for number in range(first, first + count)]


@pytest.fixture
def world() -> Iterator[MediaWorld]:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(6)})
        yield world


# ---------------------------------------------------------------------- queue and races


def test_lesson_01_lanes_locks_programs_and_accounts_never_wait_for_each_other(
    world: MediaWorld,
) -> None:
    """One path took the lock of a subscription and then the lane, another the reverse, and with one
    place in the lane it was dead for ever.
    """
    site = world.web.sites[HOST]
    site.good_tokens, site.lists_need_cookie = {TOKEN}, True
    world.account("ann", HOST, TOKEN)
    rows = []
    for number in range(4):
        site.lists[f"/l{number}"] = ids(5, 100 * number)
        rows.append(world.subscribe(f"https://{HOST}/l{number}"))
    for row in rows * 3:
        world.download_now(row)  # the lane without a cookie first, then the other one
        world.count_now(row)
        world.video(f"https://{HOST}/v/single")
        world.run_for(3)
    world.run_for("2h")
    assert world.states() == {"done": 21}
    assert jobs_of(world) == []
    assert permits(world) == []
    # Nobody stood there with work to do: the whole took as long as its calls, one after the other.
    gaps = [after.at - before.ended_at for before, after in pairwise(world.web.calls)]
    assert world.web.most_at_once == 1
    assert max(gaps) < 5.0


def test_lesson_02_clicks_on_one_thing_are_one_job_that_runs_once(world: MediaWorld) -> None:
    """A deduplicated request was run by both who had asked, the counter of what runs went wrong,
    and two double clicks killed a lane.
    """
    row = world.subscribe(URL)
    for _ in range(2):
        counted = {world.count_now(row) for _ in range(3)}
        assert len(counted) == 1
        assert len({world.download_now(row) for _ in range(3)}) == 1
        assert len({world.video(f"https://{HOST}/v/single") for _ in range(3)}) == 1
        world.run_for(1)
        assert {world.count_now(row) for _ in range(3)} == counted  # also of what runs
        world.run_for("10m")
    assert len(world.web.of("count")) == 2
    assert [each.start for each in world.web.of("list")] == [0, 0]
    assert len(world.web.got) == len(set(world.web.got)) == 7
    assert world.states() == {"done": 7}
    assert permits(world) == []
    world.web.sites[HOST].lists["/list"].insert(0, "new")
    world.download_now(row)
    world.run_for("5m")
    assert world.states() == {"done": 8}  # the lanes are alive


def test_lesson_02_two_entries_with_one_address_are_both_there_in_the_end(
    world: MediaWorld,
) -> None:
    """Who joins the job of another one has that one's end as its own."""
    site = world.web.sites[HOST]
    site.facts["v0002"] = {"url": f"https://{HOST}/v/v0001"}
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for("30m")
    check_line(world)
    assert world.states() == {"done": 5, "found": 1}
    world.download_now(row)
    world.run_for("10m")
    assert world.states() == {"done": 6}


@pytest.mark.parametrize("is_run", [False, True])
def test_lesson_09_what_has_joined_a_request_does_not_wait_for_ever_when_that_is_cancelled(
    world: MediaWorld, is_run: bool
) -> None:
    """Rows stood at "downloading" for ever: here the row of a video that somebody had asked for by
    its address, before the list was read.
    """
    row = world.subscribe(URL)
    world.app.pause("lane:requires_cookie")
    asked = world.put(new_request(DOWNLOAD, f"https://{HOST}/v/v0003", world.now, subscription=row))
    world.download_now(row)
    world.run_for("1m")
    assert world.states() == {"queued": 6}
    if is_run:
        world.app.resume("lane:requires_cookie")
        world.run_for(5)
    world.restart()
    world.app.cancel(asked)
    world.app.resume("lane:requires_cookie")
    world.run_for("1h")
    assert jobs_of(world) == []
    assert world.states() == {"done": 5, "skipped": 1}


def test_lesson_03_what_somebody_waits_for_goes_first(world: MediaWorld) -> None:
    """Waiters polled, and nobody looked at their order."""
    site = world.web.sites[HOST]
    site.lists["/list"] = ids(50)
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for("1m")
    assert world.states()["queued"] > 40
    before = len(world.web.calls)
    last = next(each for each in world.items() if each.key == "x:v0049")
    current = world.row(row)
    world.put(new_request(DOWNLOAD, last.url, world.now, subscription=current, item=last.id,
                          priority=BY_CLOCK - 2))  # fmt: skip
    world.restart()
    world.video(f"https://{HOST}/v/low")  # as usual, so it stands behind all others
    world.run_for("3m")
    after = [each.url.rpartition("/")[2] for each in world.web.calls[before:]]
    assert "v0049" in after[:2]  # the one that was under way may have begun once more
    assert after[2:4] == sorted(after[2:4])
    assert "low" not in after
    world.run_for("2h")
    assert world.web.got[-1] == "low"


def test_lesson_04_cancelled_is_cancelled_before_and_while_it_runs(world: MediaWorld) -> None:
    """A cancelled download freed its place while the program went on, whose success later
    overwrote the cancellation; one that was waiting ran all the same.
    """
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for(12)
    (running,) = [each for each in world.web.under_way if each.task == "download"]
    jobs = {payload(world, each.id)["url"]: each.id for each in jobs_of(world, DOWNLOAD)}
    waiting = f"https://{HOST}/v/v0004"
    world.app.cancel(jobs[running.url])
    world.app.cancel(jobs[waiting])
    world.run_for(0.1)
    assert running not in world.web.under_way
    world.run_for("1h")
    assert world.state_of(jobs[running.url]) == world.state_of(jobs[waiting]) == "cancelled"
    states = {each.url: (each.state, each.failure) for each in world.items()}
    assert states[running.url] == states[waiting] == ("skipped", "cancelled")
    assert world.states() == {"done": 4, "skipped": 2}
    assert waiting not in {each.url for each in world.web.calls}
    assert len(world.on_disk()) == 4


ENDS = (*FailureKind, "exception", "timeout", "cancel", "full", "gone")


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_lesson_05_every_end_gives_everything_back(
    world: MediaWorld, end: FailureKind | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths for failures forgot to release, and the lane shrank until it stood still."""
    site = world.web.sites[HOST]
    site.good_tokens = {TOKEN}
    account = world.account("ann", HOST, TOKEN)
    site.lists["/list"] = ids(3)
    fetch = world.web.fetch
    status = {FailureKind.PUSHBACK: 429, FailureKind.CREDENTIAL: 403}

    async def odd(order: Any, **more: Any) -> Any:
        if order.task.value != "download" or "v0001" not in order.url:
            return await fetch(order, **more)
        match end:
            case "exception":
                raise LookupError("no such thing")
            case "timeout":
                raise ProgramTimeout(["yt-dlp"], 1.0)
        return await fetch(order, **more)

    monkeypatch.setattr(world.media.visitor, "fetch", odd)
    row = world.subscribe(URL)
    if isinstance(end, FailureKind):
        world.download_now(row)
        world.run_for(10)
        site.failures = [failure(end, status.get(end))] * 2
    elif end == "cancel":
        world.download_now(row)
        world.run_for(10)
        for each in jobs_of(world, DOWNLOAD)[:2]:
            world.app.cancel(each.id)
    elif end == "full":
        world.media.library.min_free_bytes = 1 << 60
        world.download_now(row)
        world.run_for("20m")
        world.media.library.min_free_bytes = 0
    else:
        world.download_now(row)
    world.run_for("10d")
    assert jobs_of(world) == []
    assert permits(world) == []
    assert world.media.accounts.in_use(account) == 0
    assert not list((world.data / "cookies").iterdir())
    world.turn(lambda now: world.media.accounts.change(account, now, enabled=True))
    last = world.video(f"https://{HOST}/v/last")
    world.run_for("2m")
    assert world.state_of(last) == "completed"


def test_lesson_05_created_at_is_when_it_was_asked_for(world: MediaWorld) -> None:
    """The default of a column was evaluated once, when the module was imported."""
    row = world.subscribe(URL)
    first = world.app.store.job(world.count_now(row))
    world.run_for("1h")
    second = world.app.store.job(world.count_now(row))
    later = world.subscribe(f"https://{HOST}/later")
    assert first is not None
    assert second is not None
    assert second.created_at - first.created_at == later.created_at - row.created_at == 3_600.0


@pytest.mark.parametrize("type", ["expected_total", "parse", "list_fetch", "download"])
def test_lesson_06_whoever_puts_a_job_it_waits_its_turn(world: MediaWorld, type: str) -> None:
    """One path went around the semaphore that all others waited for."""
    site = world.web.sites[HOST]
    site.lists["/list"], site.takes_s, site.download_s = ids(40), 0.2, 0.2
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for(20)
    url = f"https://{HOST}/v/odd" if type == "download" else URL
    args = {"url": url, "subscription_id": row.id}
    odd = [
        NewJob(type, json.dumps(args), created_at=world.now, lane=lane, key=key, priority=0,
               upstreams=upstreams)
        for lane in ("default", "no_cookie", "requires_cookie", "archive")
        for key in (None, "mine", f"subscription:{row.id}")
        for upstreams in ("", json.dumps(["elsewhere.example"]), json.dumps([HOST]))
    ]  # fmt: skip
    for each in odd:
        world.put(each)
    world.app.engine.brain.heard()  # type: ignore[union-attr]
    world.run_for("3h")
    assert world.web.most_at_once == 1  # of the pool of programs
    starts = [each.at for each in world.web.calls]
    assert min(after - before for before, after in pairwise(starts)) >= 2.0  # at the pace
    assert jobs_of(world) == []


def test_lesson_07_who_is_turned_away_unlocks_nothing(world: MediaWorld) -> None:
    """A run that was skipped cleared the lock of the run that held it: locks had no owner."""
    site = world.web.sites[HOST]
    site.good_tokens = {TOKEN}
    site.download_s = 300.0
    account = world.account("ann", HOST, TOKEN)
    world.app.set("tool:yt-dlp", limit=5)
    world.app.set("lane:requires_cookie", limit=5)
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for("1m")
    (running,) = world.web.under_way
    for _ in range(5):  # in line behind it, and away again
        world.app.cancel(world.list_now(row))
        world.app.cancel(world.count_now(row))
        world.run_for(1)
    # Whoever never had the account, or had it once, cannot give it back for who has it now.
    world.turn(lambda now: world.media.accounts.given_back(1, Heard(Word.REFUSED, 403), now))
    assert world.media.accounts.in_use(account) == 1
    assert len(list((world.data / "cookies").iterdir())) == 1
    assert world.web.under_way == [running]
    world.list_now(row)
    world.run_for("1m")
    assert world.web.under_way == [running]  # the subscription is still its own
    world.run_for("3h")
    assert world.states() == {"done": 6}
    assert world.media.accounts.in_use(account) == 0


def test_lesson_08_a_cursor_stands_behind_what_is_stored(world: MediaWorld) -> None:
    """A cursor went on by fifty while two were enqueued, and what was to be tried again was taken
    off its list before it was stored elsewhere.
    """
    site = world.web.sites[HOST]
    site.lists["/list"] = ids(450)
    site.broken = {f"v{number:04}": failure(FailureKind.GONE, 404) for number in range(3)}
    site.takes_s = site.download_s = 0.3
    row = world.subscribe(URL)
    world.download_now(row)
    cursors = set()
    for step in range(80):
        world.run_for(11)
        if step % 5 == 4:
            world.restart()
        check_cursor(world, row)
        check_line(world)
        cursors.add(world.row(row).cursor)
    assert len(cursors) > 3  # it was looked at on the way
    world.run_for("30m")
    check_cursor(world, row)
    check_line(world)
    assert len(world.items()) == 450
    failed = [each for each in world.items() if each.state == "failed"]
    starter = world.media.starter
    site.broken.clear()
    broken = [*failed[:2], failed[2]._replace(url=None)]  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        world.turn(lambda now: starter.queue(world.row(row), broken, now))
    world.run_for(1)
    check_cursor(world, row)
    check_line(world)
    world.turn(lambda now: starter.queue(world.row(row), failed, now))
    world.restart()
    check_cursor(world, row)
    check_line(world)
    world.run_for("10h")
    assert world.states() == {"done": 450}


def test_lesson_09_after_a_crash_nothing_is_under_way_for_ever_and_no_setting_is_lost(
    world: MediaWorld,
) -> None:
    """Rows stood at "downloading" for ever, and capacities that were stored were never read."""
    site = world.web.sites[HOST]
    site.lists["/list"], site.lists["/more"] = ids(10), ids(10, 100)
    world.app.set("lane:requires_cookie", limit=2)
    world.app.set("tool:yt-dlp", limit=2)
    rows = [world.subscribe(f"https://{HOST}/{path}") for path in ("list", "more")]
    for row in rows:
        world.download_now(row)
    world.run_for(30)
    world.turn(lambda now: world.media.register.change(rows[0].id, now, paused=1))
    world.run_for(1)
    assert len(world.web.under_way) == 2
    for _ in range(3):
        world.restart()
        world.run_for(5)
    assert world.web.under_way
    at_pause = len([each for each in world.web.calls if "v00" in each.url])
    world.run_for("1h")
    assert len([each for each in world.web.calls if "v00" in each.url]) <= at_pause  # still paused
    assert world.states(rows[1]) == {"done": 10}
    world.turn(lambda now: world.media.register.change(rows[0].id, now, paused=0))
    world.video(f"https://{HOST}/v/a")
    world.run_for("1h")
    assert world.web.most_at_once == 2
    assert world.states() == {"done": 21}
    assert jobs_of(world) == []


# ---------------------------------------------------------------------- pushback


@pytest.mark.parametrize("status", [412, 429])
@pytest.mark.parametrize("who", ["count", "list", "download"])
def test_lesson_11_a_pushback_quiets_all_lanes_at_once(
    world: MediaWorld, status: int, who: str
) -> None:
    """412 and 429 were only written to the log: all lanes went on, and format fallbacks multiplied
    the requests just when the site had enough.
    """
    site, other = world.web.sites[HOST], world.site("other.example", lists={"/list": ids(3, 50)})
    world.app.set("tool:yt-dlp", limit=3)
    row = world.subscribe(URL)
    if who == "download":
        world.download_now(row)
        world.run_for(6)
    site.failures = [failure(FailureKind.PUSHBACK, status, retry_after_s=400.0)]
    if who != "download":
        (world.count_now if who == "count" else world.list_now)(row)
    world.run_for(25)
    ((_, pushed_at),) = world.web.pushed
    for each in (row, world.subscribe(f"https://{HOST}/more")):  # everybody wants something now
        world.download_now(each)
        world.count_now(each)
    world.video(f"https://{HOST}/v/single")
    world.download_now(world.subscribe("https://other.example/list"))
    world.run_for("5m")
    since = [each for each in world.web.calls if each.at >= pushed_at]
    assert {each.site for each in since} == {"other.example"}
    assert len(world.web.got) >= len(other.lists["/list"])
    world.run_for("2h")
    first = min(each.at for each in world.web.calls if each.at > pushed_at and each.site == HOST)
    assert first - pushed_at >= 400.0
    assert world.states(row) == {"done": 6}
    assert {each.failures for each in world.items()} == {0}


def test_lesson_12_only_the_status_says_what_is_meant(world: MediaWorld) -> None:
    """A page of a 503 with the word "unavailable" in it gave a video up for good."""
    site = world.web.sites[HOST]
    words = "video unavailable: private, deleted, 404 not found, removed, 403"
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for(5)
    site.failures = [
        Failure(kind=FailureKind.PUSHBACK, status=503, message=words),
        Failure(kind=FailureKind.SERVER, status=500, message=words),
        Failure(kind=FailureKind.NETWORK, message=words),
    ]
    world.run_for("1d")
    assert world.states() == {"done": 6}


def test_lesson_13_a_network_that_is_down_says_nothing_about_cookies(world: MediaWorld) -> None:
    """A network error in a check counted as an invalid cookie, and one failure banned it."""
    site = world.web.sites[HOST]
    site.good_tokens = {TOKEN}
    said: list[CheckAnswer] = []

    async def visit(_url: str, _cookies: str) -> CheckAnswer:
        return said[-1]

    world.media.checker.visit = visit
    account = world.turn(
        lambda now: world.media.accounts.add(
            "ann", HOST, f"SESSDATA={TOKEN}", f"https://{HOST}/me", now
        )
    )

    def status() -> str:
        return world.media.accounts.accounts[account.id].status

    said.append(CheckAnswer(200))
    world.run_for("7h")
    assert status() == "healthy"
    for answer in (CheckAnswer(None, error="no route to host"), CheckAnswer(500), CheckAnswer(503),
                   CheckAnswer(404)):  # fmt: skip
        said.append(answer)
        world.run_for("3d")
        assert status() == "healthy", answer
    row = world.subscribe(URL)
    site.lists["/list"] = ids(30)
    world.download_now(row)
    world.run_for(5)
    site.failures = [failure(FailureKind.NETWORK)] * 20 + [failure(FailureKind.SERVER, 500)] * 5
    world.run_for("6h")
    assert status() == "healthy"
    site.failures = [failure(FailureKind.CREDENTIAL, 403)]  # one alone bans nobody either
    world.video(f"https://{HOST}/v/single")
    world.run_for("1h")
    assert not site.failures
    assert status() == "healthy"
    said.append(CheckAnswer(401))
    world.run_for("7h")
    assert status() == "expired"


@pytest.mark.parametrize("form", ["header", "json", "netscape", "netscape without its header"])
def test_lesson_14_whatever_form_cookies_came_in_the_file_begins_as_it_must(
    world: MediaWorld, form: str, memory: Path
) -> None:
    """Without its first line the file of cookies broke every download; and a secret stood in a file
    that was committed.
    """
    site = world.web.sites[HOST]
    site.good_tokens = {TOKEN}
    line = f".{HOST}\tTRUE\t/\tFALSE\t0\tSESSDATA\t{TOKEN}\n"
    text = {
        "header": f"SESSDATA={TOKEN}",
        "json": json.dumps([{"name": "SESSDATA", "value": TOKEN, "domain": f".{HOST}"}]),
        "netscape": f"# Netscape HTTP Cookie File\n{line}",
        "netscape without its header": line,
    }[form]
    world.turn(lambda now: world.media.accounts.add("ann", HOST, text, "", now))
    world.download_now(world.subscribe(URL))
    world.run_for("10m")  # the program of this world looks at the first line
    assert world.states() == {"done": 6}
    assert {each.cookie for each in world.web.of("download")} == {TOKEN}
    kept = [each for each in (*world.data.rglob("*"), *memory.rglob("*"))
            if each.is_file()]  # fmt: skip
    assert len(kept) > 3 * 6
    assert not [each for each in kept if TOKEN.encode() in each.read_bytes()]


# ---------------------------------------------------------------------- disk


@pytest.mark.parametrize("how", ["away", "another disk", "emptied"])
def test_lesson_15_a_vanished_mount_erases_nothing(world: MediaWorld, how: str) -> None:
    """A check for consistency ran while a mount was away, and erased the paths of all files."""
    world.web.sites[HOST].lists["/list"] = ids(20)
    row = world.subscribe(URL)
    world.download_now(row)
    world.run_for("1h")
    root = world.media.library.root
    before = world.items()
    assert {each.state for each in before} == {"done"}
    away = root.with_name("elsewhere")
    root.rename(away)
    if how != "away":
        root.mkdir()
    if how == "emptied":  # it is the right disk, and nearly nothing is left on it
        for each in away.glob(".headway*"):
            shutil.copytree(each, root / each.name) if each.is_dir() else shutil.copy(each, root)
    report = reconciled(world)
    assert report["refused"]
    assert report["changed"] == 0
    assert world.items() == before
    world.web.sites[HOST].lists["/list"].insert(0, "new")
    if how != "emptied":
        world.download_now(row)
        world.run_for("1h")  # downloads wait, and nothing is written where the disk should be
        assert world.states() == {"done": 20, "queued": 1}
        assert not root.exists() or not list(root.iterdir())
    shutil.rmtree(root, ignore_errors=True)
    away.rename(root)
    assert reconciled(world)["refused"] is None
    world.download_now(row)
    world.run_for("1h")
    assert world.states() == {"done": 21}
    next(root.rglob("*.mp4")).unlink()  # one alone is believed
    assert reconciled(world)["changed"] == 1
    assert world.states() == {"done": 20, "missing": 1}


def reconciled(world: MediaWorld) -> dict[str, Any]:
    world.media.reconciler.in_thread = here
    job = world.put(NewJob(RECONCILE, "{}", created_at=world.now, lane=LANE))
    assert world.app.engine is not None
    world.app.engine.brain.heard()
    world.run_for("1m")
    kept = world.app.store.result(job)
    assert kept is not None
    found: dict[str, Any] = json.loads(kept.value)
    return found


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize("interval_s", [600.0, 3_600.0, 86_400.0])
def test_lesson_16_seconds_are_seconds_all_the_way(world: MediaWorld, interval_s: float) -> None:
    """An interval was stored in seconds and read as minutes."""
    row = world.subscribe(URL, interval_s=interval_s, download=0)
    world.restart()
    world.run_for(10 * interval_s)
    kept = world.app.store.rows("select interval_s from media_subscriptions")
    assert kept == [(interval_s,)]
    looks = [each.at for each in world.web.of("list")]
    assert 8 <= len(looks) <= 11
    assert all(abs(after - before - interval_s) <= interval_s / 10 + 5
               for before, after in pairwise(looks))  # fmt: skip
    world.turn(lambda now: world.media.register.change(row.id, now, interval_s=2 * interval_s))
    world.run_for(10 * interval_s)
    assert 4 <= len(world.web.of("list")) - len(looks) <= 6


def test_lesson_16_a_setting_says_in_what_it_is_measured() -> None:
    counted = {"at_once", "list_max_chunks", "max_subscriptions"}
    for each in fields(MediaSettings):
        if not isinstance(each.default, str) and each.name not in counted:
            assert each.name.endswith(("_s", "_mb", "_kb", "_days")), each.name
    said = {"LIST_FETCH_CMD_TIMEOUT": "120", "DOWNLOAD_CMD_TIMEOUT": "1800",
            "META_CMD_TIMEOUT": "60", "EXPECTED_TOTAL_TIMEOUT": "30"}  # fmt: skip
    found = media_settings(None, said)
    assert (found.list_timeout_s, found.download_timeout_s) == (120.0, 1_800.0)
    assert (found.meta_timeout_s, found.count_timeout_s) == (60.0, 30.0)
