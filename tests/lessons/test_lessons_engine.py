"""The lessons of docs/lessons.md that need an engine, a store and hands: from end to end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway import App, Every, Fail, Pushback, Retry, job
from headway.core.recurrence import duration_s
from headway.errors import EngineRunning
from headway.store.records import Query
from headway.testing import World
from tests.engine.kit import Diary, states, takes, trail

pytestmark = pytest.mark.usefixtures("worlds")


# --- queue and races


def test_lesson_01_a_lock_and_a_lane_of_one_never_wait_for_each_other(app: App) -> None:
    """One path took the lock and then the lane, another the reverse; the lane was dead for ever.
    Here jobs and slots ask for both in one step, in any order of words.
    """
    app.lane("cookie", limit=1)

    @app.job(lane="cookie", key="subscription")
    async def download() -> None:
        await takes(5)

    async def by_hand(options: dict[str, Any]) -> None:
        async with app.slot(**options):
            await takes(5)

    async def everybody() -> None:
        handles = [download.enqueue() for _ in range(10)]
        one = {"lane": "cookie", "key": "subscription"}
        other = {"key": "subscription", "lane": "cookie"}
        await asyncio.gather(*(by_hand(each) for each in [one, other] * 5))
        for handle in handles:
            await handle.aresult()

    with World(app) as world:
        start = world.now
        world.run(everybody())
        assert world.now - start == 100.0, "twenty times five seconds, one after the other"


def test_lesson_02_a_double_click_gives_one_job_that_runs_once(app: App, diary: Diary) -> None:
    """The same job was returned to two callers and both ran it; the counter went +2, then -1."""
    app.lane("cookie", limit=1)

    @app.job(lane="cookie", unique=lambda video: video)
    async def download(video: str) -> str:
        diary.note(video)
        await takes(5)
        return video

    with World(app) as world:
        diary.begin(world)
        for _ in range(2):
            first, second = download.enqueue("v"), download.enqueue("v")
            assert (first.id == second.id, second.joined) == (True, True)
            world.run_for(10)
            assert first.result() == second.result() == "v"
        after = download.enqueue("w")
        world.run_for(10)
        assert after.state == "completed", "and the lane is alive"
    assert diary.names == ["v", "v", "w"]


def test_lesson_03_the_best_of_those_who_wait_goes_first(app: App, diary: Diary) -> None:
    """Waiters polled, and whoever polled first after a release went."""
    app.lane("cookie", limit=1)

    @app.job(lane="cookie")
    async def download(priority: int) -> None:
        diary.note(priority)
        await takes(5)

    with World(app) as world:
        diary.begin(world)
        download.enqueue(0)
        world.run_for(1)
        for priority in (7, 2, 9, 1, 5):
            download.options(priority=priority).enqueue(priority)
        world.restart()
        world.run_for("5m")
    assert [name for name in diary.names if name] == [1, 2, 5, 7, 9]


def test_lesson_04_cancel_stops_the_work_first_and_stays_cancelled(app: App, diary: Diary) -> None:
    """Cancelling freed the slot while the work went on, and later its success overwrote the
    cancellation; a cancelled waiter ran all the same.
    """
    app.lane("cookie", limit=1)

    @app.job(lane="cookie")
    async def download(name: str) -> None:
        diary.note(f"{name} starts")
        try:
            await takes(60)
        finally:
            await takes(3)  # it takes its time to stop
            diary.note(f"{name} has stopped")

    with World(app) as world:
        diary.begin(world)
        running, waiting, following = (download.enqueue(name) for name in ("a", "b", "c"))
        world.run_for(10)
        running.cancel()
        waiting.cancel()
        world.run_for("10m")
        assert states([running, waiting, following]) == ["cancelled", "cancelled", "completed"]
        assert trail(running)[-2:] == ["cancel_requested", "cancel"]
    assert diary.rows[:3] == [(0.0, "a starts"), (13.0, "a has stopped"), (13.0, "c starts")]


@pytest.mark.parametrize("how", ["ok", "error", "fail", "retry", "pushback", "timeout", "cancel"])
def test_lesson_05_every_end_gives_the_place_back(app: App, how: str) -> None:
    """Failure paths forgot to release, and the lane shrank until it stopped."""
    app.lane("cookie", limit=1)

    @app.job(lane="cookie", retries=1, retry_delay="1s", timeout="5s")
    async def download(what: str) -> object:
        match what:
            case "error":
                raise LookupError
            case "fail":
                raise Fail("never")
            case "retry":
                return Retry(after=1)
            case "pushback" if not job.saved:
                job.checkpoint(True)
                return Pushback(retry_after=1)
            case "timeout":
                await takes(60)
            case "cancel":
                app.cancel(job.id)
                await takes(1)
        return None

    with World(app) as world:
        handles = [download.enqueue(how) for _ in range(10)]
        world.run_for("5m")
        assert not {"running", "queued", "pending"} & set(states(handles))
        last = download.enqueue("ok")
        world.run_for(1)
        assert last.state == "completed"


def test_lesson_05_created_at_is_when_it_was_created(app: App) -> None:
    """It was evaluated once, when the module was imported."""

    @app.job()
    def download() -> None: ...

    with World(app) as world:
        first = download.enqueue()
        world.run_for("1h")
        second = download.enqueue()
        assert second.row().created_at - first.row().created_at == 3600.0


@pytest.mark.parametrize("path", ["enqueued", "retried", "scheduled", "resumed", "slot", "restart"])
def test_lesson_06_no_path_leads_around_the_global_gate(app: App, path: str) -> None:
    """One path bypassed the global semaphore."""
    app.settings.declare("code", "everything", "", {"limit": 1})
    inside = most = 0

    async def busy() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        try:
            await takes(20)
        finally:
            inside -= 1

    @app.job()
    async def work() -> None:
        await busy()
        if path == "retried" and job.attempt == 1:
            raise LookupError

    async def by_hand() -> None:
        async with app.slot("example.com"):
            await busy()

    with World(app) as world:
        handles = [work.enqueue() for _ in range(4)]
        if path == "scheduled":
            app.schedule("s", work.call(), Every(30, anchor_at=world.now))
        elif path == "slot":
            world.run(by_hand())
        elif path == "restart":
            world.run_for(5)
            world.restart()
        elif path == "resumed":
            app.pause(handles[3].id)
            world.run_for(5)
            app.resume(handles[3].id)
        world.run_for("1h")
        assert set(states(handles)) == {"completed"}
    assert most == 1


def test_lesson_06_a_timeout_really_ends_the_work(app: App, diary: Diary) -> None:
    """A timeout did not kill its process. (Programs: see the tests with real processes.)"""

    @app.job(timeout="10s", retries=0)
    async def download() -> None:
        try:
            await takes(600)
        finally:
            diary.note("stopped")

    with World(app) as world:
        diary.begin(world)
        handle = download.enqueue()
        world.run_for("1h")
        assert handle.state == "failed"
    assert diary.rows == [(10.0, "stopped")]


def test_lesson_07_who_is_turned_away_does_not_unlock_what_others_hold(
    app: App, diary: Diary
) -> None:
    """A skipped run's `finally` cleared the other run's lock: locks without owner tokens."""

    @app.job(key="feed")
    async def refresh(name: str) -> None:
        diary.note(name)
        await takes(60)

    async def impatient() -> None:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with app.slot(key="feed", timeout="1s"):
                    raise AssertionError("two held one lock")

    with World(app) as world:
        diary.begin(world)
        refresh.enqueue("holder")
        world.run_for(1)
        skipped = refresh.enqueue("skipped")
        next_one = refresh.enqueue("next")
        skipped.cancel()
        world.run(impatient())
        world.run_for("5m")
        assert next_one.state == "completed"
    assert diary.rows == [(0.0, "holder"), (60.0, "next")]


def test_lesson_08_a_cursor_moves_with_the_work_that_it_stands_for(app: App) -> None:
    """A cursor advanced by 50 while 2 were enqueued; a retry list was popped before the work was
    stored. Here all are stored or none, and the cursor is a checkpoint of the job that reads.
    """
    stored: list[int] = []
    attempts = 0

    @app.job(unique=lambda n: f"number {n}")
    def handle(n: int) -> None:
        stored.append(n)

    @app.job(retries=5)
    def scan() -> None:
        nonlocal attempts
        attempts += 1
        start = job.saved or 0
        for cursor in range(start, 200, 50):
            page = [handle.call(n) for n in range(cursor, cursor + 50)]
            if attempts in (1, 3):
                page.insert(2, handle.options(priority="wrong").call(cursor))  # breaks half-way
            app.enqueue_many(page)
            job.checkpoint(cursor + 50)
            if attempts == 2:
                raise LookupError("in between")

    with World(app) as world:
        done = scan.enqueue()
        world.run_for("1h")
        assert done.state == "completed"
    assert sorted(stored) == list(range(200))


def test_lesson_09_a_crash_leaves_nothing_running_and_forgets_no_setting(
    url: str, diary: Diary
) -> None:
    """Rows were "downloading" for ever; persisted capacities were never read back."""

    def program() -> tuple[App, Any]:
        app = App(url)
        app.lane("cookie", limit=1)

        @app.job(lane="cookie", type="work")
        async def work() -> None:
            diary.note()
            await takes(60)

        return app, work

    app, work = program()
    with World(app, keep_store=True) as world:
        diary.begin(world)
        app.set("lane:cookie", limit=3)
        handles = [work.enqueue() for _ in range(6)]
        world.run_for(10)
        assert states(handles).count("running") == 3
        at = world.now
    app, work = program()
    with World(app, keep_store=True, at=at + 3600) as world:
        diary.begin(world)
        world.run_for(10)
        handles = [app.handle(handle.id) for handle in handles]
        assert states(handles).count("running") == 3, "three places, as was set"
        world.run_for("10m")
        assert set(states(handles)) == {"completed"}


# --- units


@pytest.mark.parametrize("text", ["30", "1800", "", "30 minutes", "m30", "-5m"])
def test_lesson_16_a_number_without_a_unit_is_no_interval(app: App, text: str) -> None:
    """The interval was stored in seconds and read as minutes."""

    @app.job()
    def refresh() -> None: ...

    with World(app):
        with pytest.raises(ValueError, match="unit"):
            app.schedule("feed", refresh.call(), text)
        with pytest.raises(ValueError, match="unit"):
            app.upstream("example.com", every=text)
        with pytest.raises(ValueError, match="unit"):
            refresh.options(delay=text).call()


def test_lesson_16_what_is_stored_is_what_is_read_back(app: App, diary: Diary) -> None:
    @app.job()
    def refresh() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        app.schedule("feed", refresh.call(), "30m")
        world.restart()
        world.run_for("1d")
        assert len(diary.times) == 86_400 / duration_s("30m")


# --- schedules


def test_lesson_17_there_is_one_scheduler(url: str, diary: Diary) -> None:
    """Three schedulers ran at once. A second engine on a store is refused."""
    app, second = App(url), App(url)

    @app.job(every="1h")
    def refresh() -> None:
        diary.note()

    with World(app, keep_store=True) as world:
        diary.begin(world)
        with pytest.raises(EngineRunning):
            second.start()
        second.close()
        world.run_for("5h")
    assert len(diary.times) == 5


def test_lesson_17_declaring_schedules_again_in_another_order_refreshes_nothing(
    app: App, diary: Diary
) -> None:
    """Reordering feeds refreshed every one of them."""

    @app.job()
    def refresh(feed: int) -> None:
        diary.note(feed)

    with World(app) as world:
        diary.begin(world)
        feeds = list(range(50))
        for feed in feeds:
            app.schedule(f"feed {feed}", refresh.call(feed), "1h")
        world.run_for("90m")
        before = {row.name: row.next_due_at for row in app.schedules()}
        ran = len(diary.rows)
        for feed in reversed(feeds):
            app.schedule(f"feed {feed}", refresh.call(feed), "1h")
        world.run_for(0)
        assert {row.name: row.next_due_at for row in app.schedules()} == before
        assert len(diary.rows) == ran
        assert app.store.count(Query(states=("cancelled",))) == 0


def test_lesson_18_a_slow_feed_builds_no_backlog(app: App, diary: Diary) -> None:
    """The due scan enqueued the same feed each minute until it finished."""

    @app.job(timeout="1h")
    async def refresh() -> None:
        diary.note()
        await takes(600)

    with World(app) as world:
        diary.begin(world)
        app.schedule("feed", refresh.call(), Every(60, anchor_at=world.now))
        for _ in range(60):
            world.run_for(60)
            waiting = app.store.count(Query(states=("pending", "queued")))
            running = app.store.count(Query(states=("running",)))
            assert waiting + running == 1
    assert diary.times == [60.0, 720.0, 1380.0, 2040.0, 2700.0, 3360.0]


def test_lesson_19_retries_hold_the_lock_and_the_chain_outlives_the_last_of_them(
    app: App, diary: Diary
) -> None:
    """A retry skipped the lock "since we hold it", but it was already released; after the last
    retry the self-rescheduling chain was dead.
    """
    inside: set[str] = set()

    @app.job(key="feed", retries=2, retry_delay="10s")
    async def refresh(name: str) -> None:
        assert not inside, "the lock was skipped"
        inside.add(name)
        diary.note(name)
        await takes(30)
        inside.discard(name)
        if name == "scheduled":
            raise LookupError

    with World(app) as world:
        diary.begin(world)
        app.schedule("feed", refresh.call("scheduled"), Every(600, anchor_at=world.now))
        for _ in range(40):
            refresh.enqueue("by hand")
        world.run_for("5h")
        failed = app.store.jobs(Query(schedule="feed", states=("failed",), limit=100))
        assert len(failed) >= 10, "it went on after each last retry"
        assert all(row.error == "LookupError" for row in failed)
        assert app.store.count(Query(schedule="feed")) == len(failed) + 1


def test_lesson_20_a_delay_of_weeks_is_delivered_once(app: App, diary: Diary) -> None:
    """Delays beyond the broker's visibility timeout were redelivered in a loop."""

    @app.job()
    def remind(name: str) -> None:
        diary.note(name)

    with World(app) as world:
        diary.begin(world)
        for days in (1, 10, 20):
            remind.options(delay=f"{days}d").enqueue(f"{days} days")
        for _ in range(21):
            world.run_for("1d")
            world.restart()
        assert app.store.event_range()[1] == 3 * len(["submit", "due", "grant", "ok"])
    assert diary.rows == [(86_400.0 * days, f"{days} days") for days in (1, 10, 20)]


def test_lesson_23_one_failing_feed_fails_alone(app: App) -> None:
    """One failing feed failed a whole batch."""

    @app.job(retries=0)
    def refresh(feed: int) -> int:
        if feed == 13:
            raise LookupError("this one is broken")
        if feed == 14:
            raise SystemExit(1)
        return feed

    with World(app) as world:
        batch = app.batch("all feeds")
        handles = [refresh.options(batch=batch).enqueue(feed) for feed in range(50)]
        world.run_for(1)
        assert batch.counts() == {"completed": 48, "failed": 2}
        good = [handle.result() for handle in handles if handle.state == "completed"]
        assert good == [feed for feed in range(50) if feed not in (13, 14)]
        assert handles[13].row().error == "LookupError: this one is broken"
