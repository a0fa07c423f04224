"""A request and the attempts that it leads to, as one would see them in a tracing tool."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2

from headway import App
from headway.api.assembly import build_app
from headway.api.config import Config
from headway.api.server import create
from headway.api.site import Site
from tests.api.test_spans import Spans

TYPES = ("plain", "asynchronous")


def traced_app() -> App:
    app = App()

    @app.job()
    def plain() -> int:
        return 1

    @app.job()
    async def asynchronous() -> int:
        raise ValueError("no")

    return app


async def enqueue_all(site: Site) -> list[int]:
    transport = httpx2.ASGITransport(app=create(site))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answers = [await client.post("/api/jobs", json={"type": type, "max_attempts": 1})
                   for type in TYPES]  # fmt: skip
        return [answer.json()["id"] for answer in answers]


def test_attempts_are_linked_to_the_requests_that_asked_for_them(tmp_path: Path) -> None:
    spans = Spans()
    config = Config(data=str(tmp_path))
    app = build_app(config, traced_app())
    with app.running():
        site = Site(app, config, spans.tracing)
        site.trace_attempts()
        ids = asyncio.run(enqueue_all(site))
        ends = [app.handle(id).wait(30) for id in ids]
    assert ends == ["completed", "failed"]
    asked = {span.context.span_id for span in spans.all() if span.name == "POST /api/jobs"}
    attempts = [span for span in spans.all() if span.name.startswith("process ")]
    assert sorted(span.name for span in attempts) == ["process asynchronous", "process plain"]
    assert {link.context.span_id for span in attempts for link in span.links} == asked


def test_without_tracing_nothing_is_kept_with_a_job(tmp_path: Path) -> None:
    config = Config(data=str(tmp_path))
    app = build_app(config, traced_app())
    with app.running():
        ids = asyncio.run(enqueue_all(Site(app, config)))
        assert not any("traceparent" in str(app.handle(id).row().spec) for id in ids)
