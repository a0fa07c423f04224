"""Traces, for those who have OpenTelemetry: `pip install 'headway[otel]'`.

Switched on by OpenTelemetry's own environment variables. Without them, or without the packages,
nothing here does anything, and nothing of OpenTelemetry is imported. What is traced is in `spans`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from headway.api.spans import Tracing

logger = logging.getLogger("headway")

LABEL = "traceparent"  # of a job, with the span that it was enqueued in
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})  # asked every few seconds, by machines

# For `FastAPI(telemetry=...)`, which else tells the same provider about each request a second time,
# and tells it queries and exceptions as they are.
ONLY_OURS: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def set_up(service_name: str = "headway") -> Tracing | None:
    """What traces, or None when nobody asked for it. `close()` it at the end."""
    if not is_wanted(os.environ):
        return None
    try:
        from headway.api.spans import open_tracing  # noqa: PLC0415 - it is an extra
    except ImportError as error:
        logger.warning(
            "OTEL_… variables ask for traces, but OpenTelemetry is not here (%s); "
            "pip install 'headway[otel]', or unset them",
            error,
        )
        return None
    try:
        return open_tracing(service_name)
    except Exception:  # the server is worth more than its traces
        logger.exception("there will be no traces; check the OTEL_… variables")
        return None


def is_wanted(environment: Mapping[str, str]) -> bool:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    return bool(exporter) or any(environment.get(name, "").strip() for name in ENDPOINTS)


def traceparent() -> str | None:
    """The current span as W3C writes it, to be kept with a job; None when there is none."""
    if "opentelemetry.trace" not in sys.modules:  # then nobody can have begun a span
        return None
    from opentelemetry import trace  # noqa: PLC0415 - it is an extra

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


class TracingMiddleware:
    """A span for each request. Put it outside of everything else, so that it sees all of it."""

    def __init__(self, app: ASGIApp, tracing: Tracing | None) -> None:
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._tracing is None or scope["type"] != "http" or scope["path"] in QUIET:
            await self._app(scope, receive, send)
            return
        with self._tracing.request_span(scope) as span:

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.answered(message["status"], message.get("headers", ()))
                await send(message)

            await self._app(scope, receive, send_and_note)
