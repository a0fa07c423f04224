"""What is told to OpenTelemetry: requests that were served, and attempts at jobs.

This imports OpenTelemetry, so only `tracing.set_up` imports this. Names and attributes follow its
semantic conventions for HTTP and messaging. Everything that is told goes through redaction.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from headway import __version__
from headway.core import Kind, Outcome
from headway.net.redaction import redact, redact_query
from headway.outcomes import Verdict

logger = logging.getLogger("headway")

METHODS = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
CLOSE_S = 2.0  # for what is not sent yet when the server stops

_parents = TraceContextTextMapPropagator()

# The kind of an ASGI scope, which has no closer type.
Scope = MutableMapping[str, Any]


def open_tracing(service_name: str) -> Tracing:
    """Trace as the environment says, or with the provider that the program has set up itself."""
    present = trace.get_tracer_provider()
    if not isinstance(present, trace.ProxyTracerProvider):
        return Tracing(present)
    provider = TracerProvider(resource=_resource(service_name), shutdown_on_exit=False)
    for exporter in _exporters(os.environ.get("OTEL_TRACES_EXPORTER", "otlp")):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)  # so that spans of handlers go the same way
    return Tracing(provider, own=provider)


def _resource(service_name: str) -> Resource:
    named = os.environ.get("OTEL_SERVICE_NAME") or SERVICE_NAME in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    attributes = {"service.version": __version__}
    return Resource.create(attributes if named else {SERVICE_NAME: service_name, **attributes})


def _exporters(names: str) -> Iterator[SpanExporter]:
    for name in names.lower().split(","):
        match name.strip():
            case "otlp" | "":
                yield OTLPSpanExporter()
            case "console":
                yield ConsoleSpanExporter(out=sys.stderr)
            case "none":
                pass
            case other:
                logger.warning("OTEL_TRACES_EXPORTER names %r; known are otlp, console", other)


class Tracing:
    def __init__(self, provider: trace.TracerProvider, own: TracerProvider | None = None) -> None:
        self._tracer = provider.get_tracer("headway", __version__)
        self._own = own

    @contextmanager
    def request_span(self, scope: Scope) -> Iterator[RequestSpan]:
        """A request, from its first byte to the last one of its answer."""
        with self._tracer.start_as_current_span(
            _method(scope),
            context=_parents.extract(_trace_headers(scope)),
            kind=SpanKind.SERVER,
            attributes=_request_attributes(scope),
            record_exception=False,  # it would tell exceptions as they are
            set_status_on_exception=False,
            end_on_exit=False,
        ) as span:
            request = RequestSpan(span, scope)
            try:
                yield request
            except Exception as error:
                request.failed(error)
                raise
            finally:
                request.end()

    @contextmanager
    def attempt_span(
        self,
        *,
        id: int,
        type: str,
        attempt: int,
        upstream: str | None = None,
        traceparent: str | None = None,
    ) -> Iterator[AttemptSpan]:
        """One attempt at a job: a trace of its own, since it may run days later, with a link to
        where it was enqueued.
        """
        attributes: dict[str, str | int] = {
            "messaging.system": "headway",
            "messaging.operation.name": "attempt",
            "messaging.operation.type": "process",
            "messaging.destination.name": redact(type),
            "messaging.message.id": str(id),
            "headway.attempt": attempt,
        }
        if upstream is not None:
            attributes["headway.upstream"] = redact(upstream)
        with self._tracer.start_as_current_span(
            f"process {redact(type)}",
            context=Context(),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(traceparent),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            job = AttemptSpan(span)
            try:
                yield job
            except BaseException as error:
                job.raised(error)
                raise
            job.ended(Outcome.ok())

    def close(self) -> None:
        """Send what is not sent yet. A provider of the program's own is left alone."""
        if self._own is not None:
            # A collector that does not answer is tried for longer than a server takes to stop.
            sending = threading.Thread(target=self._own.shutdown, name="headway-spans", daemon=True)
            sending.start()
            sending.join(CLOSE_S)


class RequestSpan:
    def __init__(self, span: Span, scope: Scope) -> None:
        self._span = span
        self._scope = scope

    def answered(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.name()
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(Status(StatusCode.ERROR))
        if any(
            name.lower() == b"content-type" and b"event-stream" in kind for name, kind in headers
        ):
            self.end()  # events may flow for days, and only what has ended is sent

    def failed(self, error: Exception) -> None:
        if self._span.is_recording():
            self.name()
            _tell(self._span, error)

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def name(self) -> None:
        """By its route, which is known once somebody has taken the request. Never by its path:
        there are too many of those.
        """
        route = _route(self._scope)
        if route is not None:
            self._span.update_name(f"{_method(self._scope)} {route}")
            self._span.set_attribute("http.route", route)


class AttemptSpan:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._told = False

    def ended(self, outcome: Outcome) -> None:
        """How it ended, from whoever knows better than what was raised. The first word counts."""
        if self._told:
            return
        self._told = True
        self._span.set_attribute("headway.outcome", outcome.kind.value)
        if outcome.status:
            self._span.set_attribute("headway.upstream_status", outcome.status)
        if outcome.kind in (Kind.FAILED, Kind.LOST):  # pushback is not failure
            self._span.set_status(Status(StatusCode.ERROR, redact(outcome.error)))

    def raised(self, error: BaseException) -> None:
        if isinstance(error, Verdict):
            self.ended(error.outcome())
        elif not isinstance(error, Exception):  # it was stopped
            self.ended(Outcome.cancelled())
        elif not self._told:
            self.ended(Outcome.failed(_said(error)))
            _tell(self._span, error)


# ---------------------------------------------------------------------- what is told


def _method(scope: Scope) -> str:
    method = scope["method"]
    return method if method in METHODS else "HTTP"


def _request_attributes(scope: Scope) -> dict[str, str]:
    method = scope["method"]
    attributes = {
        "http.request.method": method if method in METHODS else "_OTHER",
        "url.scheme": str(scope.get("scheme", "http")),
        "url.path": redact(scope["path"]),
        "network.protocol.version": str(scope.get("http_version", "")),
    }
    query = scope.get("query_string", b"")
    if query:
        attributes["url.query"] = redact_query(query.decode("latin-1"))
    if scope.get("client"):
        attributes["client.address"] = str(scope["client"][0])
    return attributes


def _trace_headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in (b"traceparent", b"tracestate")
    }


def _route(scope: Scope) -> str | None:
    # A router that was included with a prefix knows its routes without it.
    whole = (scope.get("fastapi") or {}).get("effective_route_context")
    for place in (whole, scope.get("route")):
        path = getattr(place, "path_format", None) or getattr(place, "path", None)
        if isinstance(path, str) and path:
            return path
    return None


def _links(traceparent: str | None) -> list[Link]:
    if not traceparent:
        return []
    context = _parents.extract({"traceparent": traceparent})
    producer = trace.get_current_span(context).get_span_context()
    return [Link(producer)] if producer.is_valid else []


def _tell(span: Span, error: Exception) -> None:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    span.set_attribute("error.type", name)
    span.set_status(Status(StatusCode.ERROR, redact(_said(error))))
    span.add_event(
        "exception",
        {
            "exception.type": name,
            "exception.message": redact(_said(error)),
            "exception.stacktrace": redact("".join(traceback.format_exception(error))),
        },
    )


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
