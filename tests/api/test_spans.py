"""Requests and attempts leave spans that belong together and give nothing away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.responses import StreamingResponse

from headway import Pushback, Snooze
from headway.api.spans import Tracing
from headway.api.tracing import ONLY_OURS, TracingMiddleware, traceparent
from headway.core import Outcome

CANARY = "Canary7f3kQz91"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Spans:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider)

    def all(self) -> tuple[ReadableSpan, ...]:
        return tuple(self.exporter.get_finished_spans())

    def one(self) -> ReadableSpan:
        (only,) = self.all()
        return only


@pytest.fixture
def seen() -> Spans:
    return Spans()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def everything(span: ReadableSpan) -> str:
    return span.to_json()


# --- requests


def application(seen: Spans) -> FastAPI:
    app = FastAPI(telemetry=ONLY_OURS)
    router = APIRouter()
    app.state.traceparents = []

    @app.get("/api/jobs/{id}")
    async def job(id: int) -> dict[str, int]:
        app.state.traceparents.append(traceparent())
        return {"id": id}

    @router.get("/lanes/{name}")
    async def lane(name: str) -> str:
        return name

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError(f"token={CANARY}")

    @app.get("/events")
    async def events() -> StreamingResponse:
        async def flow() -> Any:
            app.state.ended_before_the_first_event = len(seen.all())
            yield "data: 1\n\n"

        return StreamingResponse(flow(), media_type="text/event-stream")

    @app.get("/healthz")
    async def health() -> str:
        return "ok"

    app.include_router(router, prefix="/api")
    app.add_middleware(TracingMiddleware, tracing=seen.tracing)
    return app


def ask(
    app: Any, path: str, query: bytes = b"", method: str = "GET", **headers: str
) -> list[dict[str, Any]]:
    """One request by hand: what the server sent."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query,
        "root_path": "", "client": ("10.0.0.7", 5), "server": ("127.0.0.1", 8000),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    asked: list[bool] = []

    async def receive() -> dict[str, Any]:
        if asked:
            await asyncio.Event().wait()  # the client stays until it has its answer
        asked.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def test_a_request_is_a_span_named_by_its_route(seen: Spans) -> None:
    ask(application(seen), "/api/jobs/17", b"page=2")

    span = seen.one()

    assert (span.name, span.kind, span.parent) == ("GET /api/jobs/{id}", SpanKind.SERVER, None)
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/api/jobs/{id}",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": "/api/jobs/17",
        "url.query": "page=2",
        "network.protocol.version": "1.1",
        "client.address": "10.0.0.7",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_a_route_of_an_included_router_has_its_prefix(seen: Spans) -> None:
    ask(application(seen), "/api/lanes/quick")

    assert seen.one().name == "GET /api/lanes/{name}"


def test_what_has_no_route_is_named_by_its_method(seen: Spans) -> None:
    app = application(seen)
    ask(app, "/no/such/page")
    ask(app, "/no/such/page", method="BREW")

    first, second = seen.all()
    assert (first.name, attributes(first)["http.response.status_code"]) == ("GET", 404)
    assert first.status.status_code is StatusCode.UNSET, "the client's mistake, not ours"
    assert (second.name, attributes(second)["http.request.method"]) == ("HTTP", "_OTHER")


def test_an_incoming_trace_goes_on(seen: Spans) -> None:
    ask(application(seen), "/api/jobs/17", traceparent=TRACEPARENT, tracestate="a=b")

    span = seen.one()

    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.context.trace_state.get("a") == "b"


@pytest.mark.parametrize("wrong", ["", "no", f"00-{'0' * 32}-{PARENT}-01", "x" * 10_000])
def test_a_trace_that_makes_no_sense_is_not_taken_up(seen: Spans, wrong: str) -> None:
    ask(application(seen), "/api/jobs/17", traceparent=wrong)

    assert seen.one().parent is None


def test_a_job_can_keep_the_span_that_it_was_enqueued_in(seen: Spans) -> None:
    app = application(seen)
    assert traceparent() is None

    ask(app, "/api/jobs/17", traceparent=TRACEPARENT)

    (kept,) = app.state.traceparents
    context = seen.one().context
    assert context is not None
    assert kept == f"00-{TRACE}-{context.span_id:016x}-01"


def test_a_request_that_fails_is_an_error_without_its_secrets(seen: Spans) -> None:
    with pytest.raises(RuntimeError):
        ask(application(seen), "/broken", f"to%6ben={CANARY}&password={CANARY}".encode())

    span = seen.one()

    assert span.name == "GET /broken"
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "builtins.RuntimeError"
    assert attributes(span)["url.query"] == "to%6ben=[redacted]&password=[redacted]"
    assert [event.name for event in span.events] == ["exception"]
    assert CANARY not in everything(span)


def test_the_span_of_a_stream_ends_when_it_begins_to_flow(
    seen: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    app = application(seen)

    ask(app, "/events")

    assert app.state.ended_before_the_first_event == 1
    assert seen.one().name == "GET /events"
    assert not caplog.records, "it does not end twice"


def test_what_machines_ask_all_the_time_is_not_traced(seen: Spans) -> None:
    ask(application(seen), "/healthz")

    assert not seen.all()


def test_nobody_else_tells_of_a_request(seen: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: seen.provider)

    ask(application(seen), "/api/jobs/17", f"token={CANARY}".encode())

    assert CANARY not in everything(seen.one())


def test_without_tracing_the_middleware_lets_everything_through() -> None:
    reached: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        reached.append(scope["type"])

    ask(TracingMiddleware(app, None), "/api/jobs/17")

    assert reached == ["http"]


def test_what_is_no_request_is_let_through(seen: Spans) -> None:
    reached: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        reached.append(scope["type"])

    middleware: Any = TracingMiddleware(app, seen.tracing)
    asyncio.run(middleware({"type": "lifespan"}, None, None))

    assert reached == ["lifespan"]
    assert not seen.all()


# --- attempts


def test_an_attempt_is_a_trace_of_its_own_linked_to_its_producer(seen: Spans) -> None:
    with seen.tracing.attempt_span(
        id=17, type="scan", attempt=2, upstream="example.org", traceparent=TRACEPARENT
    ):
        inside = traceparent()

    span = seen.one()

    assert (span.name, span.kind, span.parent) == ("process scan", SpanKind.CONSUMER, None)
    (link,) = span.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == (TRACE, PARENT)
    assert span.context is not None
    assert span.context.trace_id != link.context.trace_id
    assert inside is not None
    assert f"{span.context.span_id:016x}" in inside
    assert attributes(span) == {
        "messaging.system": "headway",
        "messaging.operation.name": "attempt",
        "messaging.operation.type": "process",
        "messaging.destination.name": "scan",
        "messaging.message.id": "17",
        "headway.attempt": 2,
        "headway.upstream": "example.org",
        "headway.outcome": "ok",
    }


@pytest.mark.parametrize("kept", [None, "", "nonsense"])
def test_an_attempt_without_a_producer_has_no_link(seen: Spans, kept: str | None) -> None:
    with seen.tracing.attempt_span(id=17, type="scan", attempt=1, traceparent=kept):
        pass

    assert not seen.one().links


def test_an_attempt_belongs_to_no_span_that_happens_to_be_current(seen: Spans) -> None:
    with (
        seen.tracing.attempt_span(id=1, type="outer", attempt=1),
        seen.tracing.attempt_span(id=2, type="inner", attempt=1),
    ):
        pass

    assert [span.parent for span in seen.all()] == [None, None]


@pytest.mark.parametrize(
    ("error", "outcome", "is_error"),
    [
        (RuntimeError(f"password={CANARY}"), "failed", True),
        (Pushback("busy", retry_after="30s"), "pushback", False),
        (Snooze("1h"), "returned", False),
        (asyncio.CancelledError(), "cancelled", False),
        (KeyboardInterrupt(), "cancelled", False),
    ],
)
def test_an_attempt_tells_how_it_ended(
    seen: Spans, error: BaseException, outcome: str, is_error: bool
) -> None:
    with (
        pytest.raises(type(error)),
        seen.tracing.attempt_span(id=17, type="scan", attempt=1),
    ):
        raise error

    span = seen.one()

    assert attributes(span)["headway.outcome"] == outcome
    assert (span.status.status_code is StatusCode.ERROR) is is_error
    assert bool(span.events) is is_error
    assert CANARY not in everything(span)


def test_whoever_runs_it_may_know_better_how_it_ended(seen: Spans) -> None:
    with seen.tracing.attempt_span(id=17, type="scan", attempt=1) as attempt:
        attempt.ended(Outcome.pushback(status=429, error=f"token={CANARY}"))
        attempt.ended(Outcome.ok())
    with seen.tracing.attempt_span(id=18, type="scan", attempt=1) as attempt:
        attempt.ended(Outcome.failed(f"token={CANARY}"))

    first, second = seen.all()
    assert attributes(first)["headway.outcome"] == "pushback"
    assert attributes(first)["headway.upstream_status"] == 429
    assert second.status.status_code is StatusCode.ERROR
    assert second.status.description == "token=[redacted]"


def test_an_exception_that_cannot_speak_is_told_as_well_as_it_can(seen: Spans) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    with pytest.raises(Mute), seen.tracing.attempt_span(id=17, type="scan", attempt=1):
        raise Mute

    assert attributes(seen.one())["error.type"].endswith("Mute")
