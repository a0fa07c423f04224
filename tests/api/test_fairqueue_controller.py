"""Settings from a controller, and reports to it, over a real connection."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import pytest

from headway import __version__
from headway.api.fairqueue.config import FairQueueConfig, parse
from headway.api.fairqueue.controller import MAX_ANSWER, Controller, ControllerError
from headway.api.fairqueue.reporting import Reporter, Seen, report_forever, snapshot
from headway.errors import StoreUnavailable

T = TypeVar("T")

TOKEN = "a-token-that-nobody-may-see"
BOOTSTRAP = {"configVersion": "v3", "slotHandler": {"fairQueue": {"maxSlotPerHost": 3}}}


class FakeController:
    """It answers as it is told to, and keeps what it was sent."""

    def __init__(self) -> None:
        self.status = 200
        self.content = json.dumps(BOOTSTRAP).encode()
        self.headers: dict[str, str] = {}
        self.promised = 0  # bytes that are announced and never sent
        self.over = threading.Event()
        self.asked: list[tuple[str, str, Any]] = []  # path, token, body
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sent = self.headers["Authorization"].removeprefix("Bearer ")
                fake.asked.append((self.path, sent, json.loads(body)))
                self.send_response(fake.status if sent == TOKEN else 401)
                for name, value in fake.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(fake.content) + fake.promised))
                self.end_headers()
                self.wfile.write(fake.content)
                if fake.promised:
                    self.wfile.flush()
                    fake.over.wait(30)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def fake() -> Iterator[FakeController]:
    server = FakeController()
    yield server
    server.close()


def config_for(url: str, **said: Any) -> FairQueueConfig:
    who = {"token": TOKEN, "env": "prod", "instanceId": "slots-1", "appVersion": "9"}
    return parse({"controller": {"url": url, **who, **said}})


def asking(
    url: str, ask: Callable[[Controller], Awaitable[T]], *, answer_s: float = 10.0, **said: Any
) -> T:
    async def run() -> T:
        controller = Controller(config_for(url, **said).controller, answer_s=answer_s)
        try:
            return await ask(controller)
        finally:
            await controller.close()

    return asyncio.run(run())


def refusal(url: str, **options: Any) -> str:
    """Why neither settings come nor reports go."""
    messages = set()
    for ask in (Controller.bootstrap, lambda each: each.push({})):
        with pytest.raises(ControllerError) as caught:
            asking(url, ask, **options)
        message = str(caught.value)
        assert TOKEN not in message
        assert message.startswith(url)
        messages.add(message.replace("/bootstrap", "/…").replace("/metrics", "/…"))
    assert len(messages) == 1
    return messages.pop()


# ---------------------------------------------------------------------- settings


def test_settings_come_with_their_version(fake: FakeController) -> None:
    version, settings = asking(fake.url, Controller.bootstrap)

    assert (version, settings) == ("v3", BOOTSTRAP["slotHandler"])
    assert fake.asked == [
        ("/api/v0/bootstrap", TOKEN,
         {"role": "slot-handler", "env": "prod", "instance_id": "slots-1"}),
    ]  # fmt: skip
    assert parse({}).updated(settings, version).base.settings["limit"] == 3


@pytest.mark.parametrize(
    ("end", "said", "path"),
    [
        ("/", {}, "/api/v0/bootstrap"),
        ("/below/", {}, "/below/api/v0/bootstrap"),
        ("", {"apiPrefix": "api/v1/"}, "/api/v1/bootstrap"),
    ],
)
def test_where_the_settings_are(
    fake: FakeController, end: str, said: dict[str, str], path: str
) -> None:
    asking(fake.url + end, Controller.bootstrap, **said)

    assert [each[0] for each in fake.asked] == [path]


@pytest.mark.parametrize(("version", "told"), [("v1", "v1"), (7, "7"), (None, ""), ({"a": 1}, "")])
def test_a_version_is_text(fake: FakeController, version: Any, told: str) -> None:
    fake.content = json.dumps({"configVersion": version, "slotHandler": {}}).encode()

    assert asking(fake.url, Controller.bootstrap) == (told, {})


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_no_answer(fake: FakeController, content: bytes) -> None:
    fake.content = content

    with pytest.raises(ControllerError, match=r"is not JSON; check that controller\.url names"):
        asking(fake.url, Controller.bootstrap)


@pytest.mark.parametrize("said", [[], 5, {}, {"slotHandler": None}, {"slotHandler": []}])
def test_an_answer_without_settings_for_us_is_none(fake: FakeController, said: Any) -> None:
    fake.content = json.dumps(said).encode()

    with pytest.raises(ControllerError, match=r"sends no object as slotHandler; .*controller\.env"):
        asking(fake.url, Controller.bootstrap)


# ---------------------------------------------------------------------- whatever is asked


def test_a_wrong_token(fake: FakeController) -> None:
    with pytest.raises(ControllerError, match=r"answered 401; check controller\.token") as caught:
        asking(fake.url, Controller.bootstrap, token="another-token")
    assert "another-token" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "check"),
    [(403, "controller.token"), (404, "controller.url"), (500, "its log"), (503, "its log")],
)
def test_a_refusal_says_what_to_check(fake: FakeController, status: int, check: str) -> None:
    fake.status = status
    fake.content = TOKEN.encode()  # what it says is not repeated

    message = refusal(fake.url)
    assert f"answered {status}; " in message
    assert check in message


def test_a_redirect_is_not_followed(fake: FakeController) -> None:
    fake.status = 307
    fake.headers = {"Location": f"{fake.url}/elsewhere"}

    assert "answered 307; put the address that it leads to" in refusal(fake.url)
    assert [each[0] for each in fake.asked] == ["/api/v0/bootstrap", "/api/v0/metrics"]


def test_an_answer_that_is_too_large_is_not_read(fake: FakeController) -> None:
    fake.content = b" " * (MAX_ANSWER + 1)

    assert f"more than {MAX_ANSWER} bytes" in refusal(fake.url)


def test_an_answer_may_be_as_large_as_that(fake: FakeController) -> None:
    fake.content = json.dumps(BOOTSTRAP).encode().ljust(MAX_ANSWER)

    assert asking(fake.url, Controller.bootstrap)[0] == "v3"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert "cannot be reached; check controller.url" in refusal(f"http://127.0.0.1:{port}")


def test_a_name_that_nobody_has() -> None:
    assert "check" in refusal("http://a..b")


def test_an_answer_that_never_ends_is_not_waited_for(fake: FakeController) -> None:
    fake.promised = 1

    assert "has not answered within 0.2 s" in refusal(fake.url, answer_s=0.2)


def test_a_connection_that_breaks(fake: FakeController) -> None:
    fake.promised = 1
    fake.over.set()

    assert "does not answer as it should (RemoteProtocolError)" in refusal(fake.url)


def test_what_is_not_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def talk() -> None:
            for _ in range(2):
                with other.accept()[0] as connection:
                    connection.sendall(b"220 mail.example.com\r\n\r\n")
                    while connection.recv(65_536):
                        pass

        thread = threading.Thread(target=talk)
        thread.start()
        message = refusal(f"http://127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert "does not answer as it should" in message


# ---------------------------------------------------------------------- reports


def test_a_snapshot_says_who_and_how_many() -> None:
    event = snapshot(config_for("http://c"), {"granted": 2}, {"pending": 3, "granted": 1}, 12.3456)

    assert event == {
        "type": "slot_handler.snapshot",
        "ts": 12_345,
        "configVersion": "local",
        "counts": {"session_created": 0, "granted": 2, "throttled": 0, "timeout": 0, "released": 0},
        "sessions": {"total": 4, "pending": 3, "granted": 1, "throttled": 0, "timeout": 0},
        "appName": "slot-handler",
        "appVersion": "9",
        "role": "slot-handler",
        "instanceId": "slots-1",
    }
    assert snapshot(parse({}), {}, {}, 0.0)["appVersion"] == __version__


def test_a_report_is_one_event(fake: FakeController) -> None:
    fake.status, fake.content = 204, b""

    asking(fake.url, lambda controller: controller.push({"type": "slot_handler.snapshot"}))

    assert fake.asked == [
        ("/api/v0/metrics", TOKEN,
         {"source": "slot-handler", "env": "prod", "instance_id": "slots-1",
          "events": [{"type": "slot_handler.snapshot"}]}),
    ]  # fmt: skip


class Minutes:
    """A clock for the reporter: each step is done before a minute passes; then it is cancelled."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self._steps = iter(steps)
        self.waited: list[float] = []

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        step = next(self._steps, None)
        if step is None:
            raise asyncio.CancelledError
        step()


class Work:
    """What has been done so far at a service."""

    def __init__(self) -> None:
        self.totals = {"session_created": 0, "granted": 0}
        self.trouble: Exception | None = None

    def grant(self, many: int) -> None:
        self.totals["granted"] += many

    async def look(self) -> Seen:
        if self.trouble is not None:
            raise self.trouble
        return self.totals, {"granted": 1}


def reports(fake: FakeController, work: Work, *steps: Callable[[], None]) -> list[int]:
    """How many grants each report that arrived has told of."""

    async def run() -> list[float]:
        config = config_for(fake.url)
        controller = Controller(config.controller)
        minutes = Minutes(*steps)
        reporter = Reporter(controller, lambda: config, work.look, lambda: 1.0)
        with pytest.raises(asyncio.CancelledError):
            await report_forever(reporter, wait=minutes.wait)
        await controller.close()
        return minutes.waited

    assert asyncio.run(run()) == [60.0] * (len(steps) + 1)
    return [body["events"][0]["counts"]["granted"] for _, _, body in fake.asked]


def test_every_minute_it_reports_what_is_new(fake: FakeController) -> None:
    work = Work()

    assert reports(
        fake, work, lambda: work.grant(5), lambda: work.grant(2), lambda: None
    ) == [5, 2, 0]  # fmt: skip


def test_what_could_not_be_reported_is_part_of_the_next_report(
    fake: FakeController, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()

    def away(many: int) -> None:
        fake.status = 500
        work.grant(many)

    def back(many: int) -> None:
        fake.status = 200
        work.grant(many)

    with caplog.at_level(logging.WARNING, "headway.fairqueue"):
        told = reports(fake, work, lambda: work.grant(1), lambda: away(10), lambda: away(100),
                       lambda: back(1000), lambda: work.grant(3))  # fmt: skip

    assert told == [1, 10, 110, 1110, 3]  # two of them did not count for the controller
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "answered 500" in caplog.messages[0]
    assert "again" in caplog.messages[1]
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("trouble", [StoreUnavailable("away"), KeyError("a mistake")])
def test_whatever_goes_wrong_the_next_report_comes(
    fake: FakeController, trouble: Exception
) -> None:
    work = Work()

    def fail() -> None:
        work.trouble = trouble

    def mend() -> None:
        work.trouble = None
        work.grant(4)

    assert reports(fake, work, fail, mend) == [4]


def test_what_cannot_be_seen_for_a_while_is_not_reported_twice(fake: FakeController) -> None:
    work = Work()

    def hide() -> None:
        work.totals = {}

    def show() -> None:
        work.totals = {"granted": 7}

    assert reports(fake, work, lambda: work.grant(5), hide, show) == [5, 0, 2]


def test_two_who_report_at_once_do_not_say_it_twice(fake: FakeController) -> None:
    work = Work()
    work.grant(6)

    async def run() -> None:
        config = config_for(fake.url)
        controller = Controller(config.controller)
        reporter = Reporter(controller, lambda: config, work.look)
        await asyncio.gather(reporter.report(), reporter.report())
        await controller.close()

    asyncio.run(run())
    assert [body["events"][0]["counts"]["granted"] for _, _, body in fake.asked] == [6, 0]
