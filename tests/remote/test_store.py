"""A server in the place of a store: what is sent, what is asked, and what is refused."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx2
import pytest

from headway import App, Cron, Every, errors
from headway.remote import store as remote_store
from headway.remote.client import Client
from headway.remote.store import NOT_HERE, RemoteStore
from headway.remote.wire import search
from headway.store.protocol import Looking, Producing
from headway.store.records import NewJob, Query
from tests.remote.kit import URL, problem


class Recorder:
    """Answers each path with what is laid out for it, and keeps what came."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.get(request.url.path)
        if request.url.path == "/api/work/put" and answer is None:
            many = len(json.loads(request.content)["jobs"])
            answer = {"jobs": [{"id": n + 1, "joined": False} for n in range(many)]}
        if isinstance(answer, httpx2.Response):
            return answer
        return httpx2.Response(200, json=answer if answer is not None else {"status": "queued"})

    @property
    def body(self) -> Any:
        return json.loads(self.requests[-1].content)


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


@pytest.fixture
def app(heard: Recorder) -> App:
    app = App(URL)
    transport = httpx2.MockTransport(heard)
    client = Client(URL, patience_s=0.0, transport=transport, async_transport=transport)
    app._store = RemoteStore(client, app._tools_of)
    return app


def put_body(heard: Recorder) -> dict[str, Any]:
    [job] = heard.body["jobs"]
    return dict(job)


# ---------------------------------------------------------------------- enqueueing


def test_a_plain_job_says_only_what_it_must(app: App, heard: Recorder) -> None:
    @app.job()
    def add(a: int, b: int = 2) -> None: ...

    handle = add.enqueue(1)
    assert handle.id == 1
    assert put_body(heard) == {"type": "add", "args": {"a": 1}, "lane": "default", "priority": 5}


def test_every_option_is_sent(app: App, heard: Recorder) -> None:
    @app.job(tools=("disk",), keep_result="1h")
    def fetch(url: str) -> None: ...

    fetch.options(
        lane="video", upstream=["a.example", "b.example"], key="k", tenant="t", priority=1,
        weight=2.0, traffic="leftover", cost=3.0, tools=("ffmpeg",), ordered="hold",
        labels={"team": "x"}, at=2e9, within="1m", unique="one", unique_while="queued",
        on_conflict="reject", after=(1, 2), batch=7,
    ).enqueue("u")  # fmt: skip
    assert put_body(heard) == {
        "type": "fetch", "args": {"url": "u"}, "lane": "video",
        "upstream": ["a.example", "b.example"], "key": "k", "tenant": "t", "priority": 1,
        "weight": 2.0, "traffic": "leftover", "cost": 3.0, "tools": ["ffmpeg", "disk"],
        "ordered": "hold", "labels": {"team": "x"}, "at": 2e9, "deadline": 2e9 + 60,
        "unique": {"key": "one", "while": "queued", "on_conflict": "reject"},
        "after": [1, 2], "batch": 7, "keep_result_s": 3600.0,
    }  # fmt: skip


def test_many_go_in_one_request_and_in_order(app: App, heard: Recorder) -> None:
    @app.job()
    def add(a: int) -> None: ...

    handles = app.enqueue_many(add.call(n) for n in range(500))
    assert [handle.id for handle in handles] == list(range(1, 501))
    assert len(heard.requests) == 1
    assert [job["args"]["a"] for job in heard.body["jobs"]] == list(range(500))
    assert app.enqueue_many([]) == []
    assert len(heard.requests) == 1


def test_too_many_are_refused_as_a_whole(app: App, heard: Recorder) -> None:
    calls = [NewJob("x", "{}", created_at=0.0)] * 10_001
    with pytest.raises(errors.BadJob, match="at most 10000"):
        app.enqueue_many(calls)
    assert not heard.requests


def test_a_loop_enqueues_without_blocking(app: App) -> None:
    @app.job()
    def add(a: int) -> None: ...

    async def main() -> list[int]:
        one = await add.aenqueue(1)
        more = await app.aenqueue_many([add.call(2), add.call(3)])
        return [one.id, *(handle.id for handle in more)]

    assert asyncio.run(main()) == [1, 1, 2]


def test_posting_answers_from_another_thread(app: App) -> None:
    came = threading.Event()
    answers: list[Any] = []

    def done(value: Any, error: BaseException | None) -> None:
        answers.append((value, error))
        came.set()

    assert app.remote is not None
    app.remote.post([NewJob("x", "{}", created_at=0.0)], done)
    assert came.wait(10)
    assert answers == [([(1, False)], None)]
    came.clear()
    app.remote.post([NewJob("x", "{}", created_at=0.0)] * 10_001, done)
    assert came.wait(10)
    assert isinstance(answers[1][1], errors.BadJob)


def test_an_answer_for_other_jobs_is_not_believed(app: App, heard: Recorder) -> None:
    heard.answers["/api/work/put"] = {"jobs": []}
    with pytest.raises(errors.StoreError, match="sent 1 jobs, and answers for 0"):
        app.enqueue(NewJob("x", "{}", created_at=0.0))


def test_a_connection_of_the_callers_is_refused(app: App) -> None:
    call = NewJob("x", "{}", created_at=0.0)
    with pytest.raises(errors.BadJob, match="transaction of yours"):
        app.enqueue(call, conn=object())
    with pytest.raises(errors.BadJob, match="transaction of yours"):
        asyncio.run(app.aenqueue(call, conn=object()))


# ---------------------------------------------------------------------- waiting


def test_waiting_is_done_by_the_server(
    app: App, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "SOON_S", 0.0)
    states = iter(["running", "running", "completed"])

    def answer(request: httpx2.Request) -> httpx2.Response:
        heard.requests.append(request)
        return httpx2.Response(200, json={"status": next(states)})

    client = Client(URL, transport=httpx2.MockTransport(answer))
    app._store = RemoteStore(client)
    assert app.handle(7).wait(100) == "completed"
    assert len(heard.requests) == 3
    assert all(float(each.url.params["wait_s"]) == 30.0 for each in heard.requests)


@pytest.mark.parametrize("timeout", [0.0, 0.3])
def test_waiting_ends_when_the_time_is_over(timeout: float, app: App, heard: Recorder) -> None:
    heard.answers["/api/jobs/7"] = {"status": "running"}
    with pytest.raises(TimeoutError, match="job 7 is still running"):
        app.handle(7).wait(timeout)
    assert len(heard.requests) <= 1 + timeout / 0.1  # a server that answers at once is not flooded
    with pytest.raises(TimeoutError, match="job 7 is still running"):
        asyncio.run(app.handle(7).await_end(timeout))


def test_waiting_survives_a_server_that_is_away_for_a_while(app: App) -> None:
    answers = [httpx2.ConnectError("away")] * 3 + [httpx2.ReadError("cut")]

    def answer(_: httpx2.Request) -> httpx2.Response:
        if answers:
            raise answers.pop()
        return httpx2.Response(200, json={"status": "failed"})

    transport = httpx2.MockTransport(answer)
    client = Client(URL, patience_s=0.0, transport=transport, async_transport=transport)
    app._store = RemoteStore(client)
    assert app.handle(7).wait(20) == "failed"


def test_results(app: App, heard: Recorder) -> None:
    heard.answers["/api/jobs/7"] = {"status": "completed"}
    heard.answers["/api/jobs/7/result"] = {"value": [1, 2], "expires_at": "2099-01-01T00:00:00Z"}
    assert app.handle(7).result(1) == [1, 2]
    assert asyncio.run(app.handle(7).aresult(1)) == [1, 2]
    heard.answers["/api/jobs/7/result"] = {"value": None, "expires_at": None}
    assert app.handle(7).result(1) is None
    heard.answers["/api/jobs/7/result"] = problem(404, "expired", "it was kept no longer")
    with pytest.raises(errors.ResultExpired, match="kept no longer"):
        app.handle(7).result(1)
    heard.answers["/api/jobs/7/result"] = problem(409, "no-result", state="running")
    assert app.store.result(7) is None


# ---------------------------------------------------------------------- orders


def test_a_schedule_that_http_cannot_say_is_refused(app: App, heard: Recorder) -> None:
    @app.job()
    def poll() -> None: ...

    app.schedule("a", poll.call(), "90s")
    assert heard.body == {
        "name": "a", "every": "90.000s",
        "job": {"type": "poll", "args": {}, "lane": "default", "priority": 5},
    }  # fmt: skip
    app.schedule("b", poll.call(), Cron("0 3 * * *", zone="Europe/Berlin"))
    assert (heard.body["cron"], heard.body["zone"]) == ("0 3 * * *", "Europe/Berlin")
    with pytest.raises(errors.BadJob, match="cannot be said over HTTP"):
        app.schedule("c", poll.call(), Every(60, jitter_s=5))


@pytest.mark.parametrize("target", ["all", "key:x"])
def test_what_no_route_leads_to_is_refused(target: str, app: App, heard: Recorder) -> None:
    with pytest.raises(ValueError, match=r"over HTTP|no gate"):
        app.close_until(target, 2e9)
    assert not heard.requests


def test_names_may_have_any_characters(app: App, heard: Recorder) -> None:
    app.unschedule("a b/c?d")
    assert heard.requests[-1].url.raw_path == b"/api/schedules/a%20b%2Fc%3Fd"


def test_a_slot_asks_for_nothing_before_it_is_entered(app: App, heard: Recorder) -> None:
    app.slot("x.example")
    assert not heard.requests


# ---------------------------------------------------------------------- what it is


def test_it_can_all_that_a_store_can_for_any_process() -> None:
    for protocol in (Producing, Looking):
        names = [name for name in vars(protocol) if not name.startswith("_")]
        assert names
        for name in names:
            assert callable(getattr(RemoteStore, name, None)), name


def test_what_only_an_engine_does_is_refused(app: App) -> None:
    for name in NOT_HERE:
        with pytest.raises(errors.StoreError, match="is a server"):
            getattr(app.store, name)
    assert not hasattr(app.store, "nonsense")


def test_searching_is_said_in_words() -> None:
    query = Query(
        states=("failed", "queued"), type="a", labels=(("team", 'x "y"\\'),), error="no route",
        created_after=0.0, ids=(1, 2), batch=3,
    )  # fmt: skip
    said = search(query)
    assert said["status"] == "failed,queued"
    assert said["batch"] == 3
    assert said["q"] == (
        'label:"team=x \\"y\\"\\\\" error:"no route" id:1,2 created:>1970-01-01T00:00:00+00:00'
    )
    with pytest.raises(errors.BadJob, match="below"):
        search(Query(below=3))
