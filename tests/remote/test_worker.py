"""A worker runs jobs of a server as an engine would run them itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headway import App, Every, Fail, Pushback, job
from headway.errors import BadJob, NotAllowed, StoreError
from headway.remote.worker import Worker
from tests.hands.kit import KINDS, Endless, shell
from tests.remote.kit import WAIT_S, FakeServer, eventually, problem

Start = Callable[..., Worker]


def test_a_job_is_run_and_its_result_reported(app: App, server: FakeServer, working: Start) -> None:
    @app.job()
    def add(a: int, b: int) -> int:
        return a + b

    fence = server.put("add", {"a": 1, "b": 2})
    working()
    ended = server.has_ended(fence)
    assert ended["outcome"] == {"kind": "ok"}
    assert ended["body"] == 3
    assert (ended["id"], ended["fence"]) == (fence, fence)


def test_what_an_answer_said_about_rates_is_reported(
    app: App, server: FakeServer, working: Start
) -> None:
    said = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "7", "set-cookie": "canary-word"}

    @app.job()
    def call(well: bool) -> None:
        if not well:
            raise Pushback(headers={**said, "retry-after": "9"})
        job.heard(said)

    first, second = server.put("call", {"well": True}), server.put("call", {"well": False})
    working()
    told = {"ratelimit-policy": '"requests";q=60;w=60', "ratelimit": '"requests";r=7;t=60'}
    assert server.has_ended(first)["headers"] == told
    assert server.has_ended(second)["headers"] == {**told, "retry-after": "9"}
    assert server.ended[second]["outcome"]["retry_after_s"] == 9.0


def test_all_that_a_handler_can_say_arrives(app: App, server: FakeServer, working: Start) -> None:
    @app.job()
    async def talk() -> None:
        assert job.saved == {"page": 6}
        assert (job.attempt, job.tenant, job.key, job.upstream) == (3, "t", "k", "x.example")
        job.progress(1, 2, "half")
        job.checkpoint({"page": 7})
        job.log("a line")

    fence = server.put("talk", attempt=3, tenant="t", key="k", upstream="x.example",
                       checkpoint={"page": 6})  # fmt: skip
    working()
    assert server.has_ended(fence)["outcome"] == {"kind": "ok"}
    assert "body" not in server.ended[fence]
    notes = {name: value for body in server.said("heartbeat") for each in body["jobs"]
             for name, value in each.items()}  # fmt: skip
    assert notes["progress"] == {"done": 1.0, "total": 2.0, "note": "half"}
    assert notes["checkpoint"] == {"page": 7}
    assert [line["line"] for line in notes["logs"]] == ["a line"]
    order = [name for name, _ in server.calls if name in ("heartbeat", "complete")]
    assert order[-1] == "complete"  # the last words come before the end


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Pushback("slow down", retry_after=30),
         {"kind": "pushback", "status": 429, "retry_after_s": 30.0, "error": "slow down"}),
        (Fail("never"), {"kind": "failed", "fatal": True, "error": "never"}),
        (ConnectionError("cut"),
         {"kind": "failed", "upstream_fault": True, "error": "ConnectionError: cut"}),
    ],
)  # fmt: skip
def test_errors_are_judged_here(
    error: Exception, outcome: dict[str, object], app: App, server: FakeServer, working: Start
) -> None:
    @app.job()
    async def fail() -> None:
        raise error

    fence = server.put("fail")
    working()
    assert server.has_ended(fence)["outcome"] == outcome


def test_hello_tells_what_the_code_declares(app: App, server: FakeServer, working: Start) -> None:
    app.lane("video", limit=2)
    app.upstream("*.example.com", limit=1, every="1s")

    @app.job(timeout=7, retries=1, retry_delay=2, keep_result=5, tools=("disk",), every=Every(60))
    async def poll() -> None: ...

    working()
    hello = eventually(lambda: server.said("hello"))[0]
    [told] = hello["types"]
    assert (told["name"], told["timeout_s"], told["retries"], told["delay_s"]) == ("poll", 7, 1, 2)
    assert told["keep_result_s"] == 5
    settings = {(each["kind"], each["name"]): each["value"] for each in hello["settings"]}
    assert settings["lane", "video"] == {"limit": 2}
    assert settings["upstream", "*.example.com"] == {"limit": 1, "every": "1s"}
    assert not any(name.startswith("hands:") for _, name in settings)
    [schedule] = hello["schedules"]
    assert (schedule["name"], schedule["type"], schedule["args"]) == ("poll", "poll", "{}")
    assert "disk" in schedule["options"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["poll", "heartbeat"])
def test_an_order_to_cancel_ends_the_work(kind: str, way: str, app: App, tmp_path: Path) -> None:
    server = FakeServer(lease_s=90.0 if way == "poll" else 0.6)
    endless = Endless(app, kind, tmp_path)
    fence = server.put("endless")
    worker = server.worker(app)
    worker.start()
    try:
        endless.has_started()
        if way == "poll":
            server.order(fence, "cancel")
        else:
            server.orders[fence] = "cancel"
        assert server.has_ended(fence)["outcome"] == {"kind": "cancelled"}
        assert not endless.is_at_work()
    finally:
        worker.stop(0.0)


def test_a_full_worker_still_hears_orders(app: App, server: FakeServer, working: Start) -> None:
    started = threading.Event()

    @app.job()
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    fence = server.put("wait")
    working(concurrency=1)
    assert started.wait(WAIT_S)
    eventually(lambda: any(body["size"] == 0 for body in server.said("take")))
    server.order(fence, "cancel")
    assert server.has_ended(fence)["outcome"] == {"kind": "cancelled"}
    again = server.put("wait")  # and takes more as soon as there is room
    server.order(again, "cancel")


def test_never_more_than_there_are_places(app: App, server: FakeServer, working: Start) -> None:
    app.threads, app.tasks = 2, 3
    lock = threading.Lock()
    now = {"sync": 0, "async": 0}
    most = {"sync": 0, "async": 0}
    together = [0]

    def count(kind: str, by: int) -> None:
        with lock:
            now[kind] += by
            most[kind] = max(most[kind], now[kind])
            together[0] = max(together[0], sum(now.values()))

    @app.job()
    def plain() -> None:
        count("sync", 1)
        threading.Event().wait(0.005)
        count("sync", -1)

    @app.job()
    async def task() -> None:
        count("async", 1)
        await asyncio.to_thread(threading.Event().wait, 0.005)
        count("async", -1)

    fences = [server.put("plain") for _ in range(20)] + [server.put("task") for _ in range(20)]
    working(concurrency=4)
    for fence in fences:
        server.has_ended(fence)
    assert most["sync"] <= 2
    assert most["async"] <= 3
    assert together[0] <= 4


def test_a_kind_that_is_full_does_not_keep_the_other_waiting(
    app: App, server: FakeServer, working: Start
) -> None:
    app.threads, app.tasks = 1, 2
    free = threading.Event()

    @app.job()
    def plain() -> str:
        assert free.wait(WAIT_S)
        return "plain"

    @app.job()
    async def task() -> str:
        return "task"

    first = server.put("plain")
    working()
    eventually(lambda: not server.queue)
    quick = [server.put("task") for _ in range(5)]
    second = server.put("plain")
    for fence in quick:
        assert server.has_ended(fence)["body"] == "task"
    assert second not in server.ended
    free.set()
    assert server.has_ended(first)["body"] == server.has_ended(second)["body"] == "plain"


def test_a_handler_that_blocks_its_loop_stops_no_heartbeat(app: App) -> None:
    server = FakeServer(lease_s=0.6)
    free = threading.Event()

    @app.job()
    async def block() -> str:
        free.wait(WAIT_S)
        return "done"

    fence = server.put("block")
    worker = server.worker(app)
    worker.start()
    try:
        eventually(lambda: len(server.said("heartbeat")) >= 5)
        free.set()
        assert server.has_ended(fence)["body"] == "done"
    finally:
        free.set()
        worker.stop(0.0)


def test_programs_end_with_their_job(app: App, server: FakeServer, working: Start) -> None:
    @app.job(timeout=1)
    def program() -> None:
        job.run(shell("exec sleep 1000"))

    fence = server.put("program", timeout_s=0.2)
    working()
    outcome = server.has_ended(fence)["outcome"]
    assert outcome["kind"] == "failed"
    assert "longer than 0.2 s" in outcome["error"]


# ---------------------------------------------------------------------- what it refuses


def test_an_app_without_jobs_has_nothing_to_take(app: App, server: FakeServer) -> None:
    with pytest.raises(BadJob, match="no jobs"):
        server.worker(app)


def test_a_server_that_lets_nobody_in_ends_the_worker(app: App, server: FakeServer) -> None:
    @app.job()
    async def nothing() -> None: ...

    server.troubles["hello"].append(problem(401, "no-token", "send a token"))
    worker = server.worker(app)
    worker.start()
    assert worker.done.wait(WAIT_S)
    assert isinstance(worker.error, NotAllowed)
    assert "send a token" in str(worker.error)
    assert "hw_secret" not in str(worker.error)
    worker.stop(0.0)


@pytest.mark.parametrize("what", ["take", "heartbeat", "complete"])
def test_a_token_that_is_revoked_ends_the_worker(what: str, app: App) -> None:
    server = FakeServer(lease_s=0.6)
    free = threading.Event()

    @app.job()
    async def wait() -> None:
        await asyncio.to_thread(free.wait, WAIT_S if what == "heartbeat" else 0.0)

    server.put("wait")
    server.troubles[what].append(problem(403, "scope", "this needs the scope operate"))
    worker = server.worker(app)
    worker.start()
    assert worker.done.wait(WAIT_S)
    free.set()
    assert isinstance(worker.error, NotAllowed)
    worker.stop(0.0)


def test_what_is_no_server_of_ours_ends_the_worker(app: App, server: FakeServer) -> None:
    @app.job()
    async def nothing() -> None: ...

    server.troubles["hello"].append(problem(404, "about:blank", "Not Found"))
    worker = server.worker(app)
    worker.start()
    assert worker.done.wait(WAIT_S)
    assert isinstance(worker.error, StoreError)
    assert "check the address" in str(worker.error)
    worker.stop(0.0)
