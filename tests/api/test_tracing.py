"""Tracing is switched on by the environment, and its absence does no harm."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from headway.api import spans, tracing
from headway.api.spans import Tracing
from headway.api.tracing import is_wanted


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_the_environment_switches_tracing_on(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) is wanted


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME",
                 "OTEL_RESOURCE_ATTRIBUTES", *tracing.ENDPOINTS):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.usefixtures("clean_environment")
def test_nothing_is_set_up_when_nobody_asks() -> None:
    assert tracing.set_up("headway") is None


def test_missing_packages_are_named_and_do_no_harm(
    clean_environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clean_environment.setenv("OTEL_TRACES_EXPORTER", "otlp")
    clean_environment.setitem(sys.modules, "headway.api.spans", None)

    assert tracing.set_up("headway") is None
    assert "headway[otel]" in caplog.text


def test_settings_that_make_no_sense_do_no_harm(
    clean_environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_service_name: str) -> None:
        raise ValueError("no endpoint")

    clean_environment.setenv("OTEL_TRACES_EXPORTER", "otlp")
    clean_environment.setattr(spans, "open_tracing", fail)

    assert tracing.set_up("headway") is None
    assert "check the OTEL_" in caplog.text


def test_a_provider_of_the_programs_own_is_used_and_left_alone(
    clean_environment: pytest.MonkeyPatch,
) -> None:
    exporter = InMemorySpanExporter()
    own = TracerProvider(shutdown_on_exit=False)
    own.add_span_processor(SimpleSpanProcessor(exporter))
    clean_environment.setenv("OTEL_TRACES_EXPORTER", "otlp")
    clean_environment.setattr(trace, "get_tracer_provider", lambda: own)

    made = tracing.set_up("headway")
    assert made is not None
    made.close()
    with made.attempt_span(id=17, type="scan", attempt=1):
        pass

    assert [span.name for span in exporter.get_finished_spans()] == ["process scan"]


@pytest.mark.parametrize(
    ("variables", "service"),
    [
        ({}, "mine"),
        ({"OTEL_SERVICE_NAME": "theirs"}, "theirs"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=theirs"}, "theirs"),
    ],
)
def test_spans_are_sent_as_the_environment_says(
    clean_environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    variables: dict[str, str],
    service: str,
) -> None:
    clean_environment.setenv("OTEL_TRACES_EXPORTER", "console,smoke-signals")
    for name, value in variables.items():
        clean_environment.setenv(name, value)
    set_globally: list[Any] = []
    clean_environment.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    clean_environment.setattr(trace, "set_tracer_provider", set_globally.append)

    with caplog.at_level(logging.WARNING):
        made = tracing.set_up("mine")
    assert made is not None
    with made.attempt_span(id=17, type="scan", attempt=1):
        pass
    made.close()

    told = capsys.readouterr().err
    assert '"name": "process scan"' in told
    assert f'"service.name": "{service}"' in told
    assert "smoke-signals" in caplog.text
    assert len(set_globally) == 1


class Collector(BaseHTTPRequestHandler):
    """Takes spans as a collector does, and remembers them on its server."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append((self.path, body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_spans_reach_a_collector(clean_environment: pytest.MonkeyPatch) -> None:
    server = HTTPServer(("127.0.0.1", 0), Collector)
    told = server.told = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        made = send_to(clean_environment, server.server_port)
        with made.attempt_span(id=17, type="scan", attempt=1):
            pass
        made.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    ((path, body),) = told
    assert path == "/v1/traces"
    assert b"process scan" in body


def test_a_collector_that_does_not_answer_is_not_waited_for(
    clean_environment: pytest.MonkeyPatch,
) -> None:
    clean_environment.setattr(spans, "CLOSE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = send_to(clean_environment, silent.getsockname()[1])
        with made.attempt_span(id=17, type="scan", attempt=1):
            pass
        begun = monotonic()
        made.close()
        assert monotonic() - begun < 5, "the exporter itself would wait for 10 s"


def send_to(environment: pytest.MonkeyPatch, port: int) -> Tracing:
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    environment.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    environment.setattr(trace, "set_tracer_provider", lambda _provider: None)
    made = tracing.set_up("headway")
    assert made is not None
    return made


WITHOUT = """
import sys

class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nobody())
from headway.api import tracing
assert tracing.traceparent() is None
assert tracing.set_up("headway") is None
assert not any(name.startswith("opentelemetry") for name in sys.modules)
"""


@pytest.mark.parametrize("exporter", ["", "otlp"])
def test_it_all_works_without_opentelemetry(
    clean_environment: pytest.MonkeyPatch, exporter: str
) -> None:
    clean_environment.setenv("OTEL_TRACES_EXPORTER", exporter)

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert ("headway[otel]" in done.stderr) is bool(exporter)
