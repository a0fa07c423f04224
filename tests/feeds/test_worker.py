"""Feeds are read in processes that can be killed, and one bad feed costs nobody else anything."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from headway.apps.feeds.parsing import (
    EntitiesDeclared,
    FeedParser,
    FeedTooLarge,
    FeedUnreadable,
    Limits,
    NotAFeed,
    ParsedFeed,
    ParserDied,
    ParserOutOfMemory,
    ParserTooSlow,
)
from tests.feeds.documents import URL, item, rss
from tests.hands.kit import eventually, is_alive

T = TypeVar("T")
FEED = rss(item("<guid>1</guid><title>One</title>")).encode()
# feedparser looks for a mail address in it, and tries each place where one might begin.
SLOW = rss(item(f"<author>{'a' * 1_000_000}</author>")).encode()
LARGE = rss(item(f"<title>{'x' * 15_000_000}</title>")).encode()


def run(work: Coroutine[Any, Any, T]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(in_time())


@pytest.fixture(scope="module")
def patient() -> Iterator[FeedParser]:
    """One worker for all tests that leave it alive."""
    parser = FeedParser(workers=1)
    yield parser
    run(parser.close())


@pytest.fixture
def strict() -> Iterator[FeedParser]:
    """One worker that may use little."""
    limits = Limits(cpu_s=0.7, memory_bytes=100 * 1024 * 1024, answer_bytes=2_000)
    parser = FeedParser(workers=1, limits=limits)
    yield parser
    run(parser.close())


def title_by(parser: FeedParser) -> str | None:
    return run(parser.parse(FEED, url=URL)).entries[0].title


async def busy_with(parser: FeedParser, document: bytes) -> asyncio.Task[ParsedFeed]:
    """Asked of its only worker, which is now at work on it."""
    (pid,) = parser.pids()
    worker = psutil.Process(pid)
    before_s = worker.cpu_times().user
    asked = asyncio.create_task(parser.parse(document, url=URL))
    await asyncio.to_thread(eventually, lambda: worker.cpu_times().user > before_s + 0.05)
    return asked


def test_a_worker_starts_when_it_is_needed_and_serves_many_feeds_of_any_event_loop(
    patient: FeedParser,
) -> None:
    assert patient.pids() == frozenset()
    assert title_by(patient) == "One"
    first = patient.pids()
    assert title_by(patient) == "One"
    assert patient.pids() == first
    assert len(first) == 1


def test_what_is_read_there_is_what_is_read_here(patient: FeedParser) -> None:
    there = run(patient.parse(FEED, url=URL, content_type="text/xml"))
    assert isinstance(there, ParsedFeed)
    assert there.title == "A site"


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (b"<html/>", NotAFeed),
        (b"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss/>", EntitiesDeclared),
        (b" " * (16 * 1024 * 1024 + 1), FeedTooLarge),
    ],
)
def test_a_refusal_is_the_same_error_and_the_worker_goes_on(
    patient: FeedParser, document: bytes, error: type[FeedUnreadable]
) -> None:
    before = patient.pids()
    with pytest.raises(error):
        run(patient.parse(document, url=URL))
    assert title_by(patient) == "One"
    assert before in (frozenset(), patient.pids())


def test_a_large_feed_goes_both_ways(patient: FeedParser) -> None:
    text = "lorem ipsum " * 30_000
    feed = run(
        patient.parse(
            rss(item(f"<title>x</title><description>{text}</description>") * 5).encode(), url=URL
        )
    )
    assert [len(entry.summary or "") for entry in feed.entries] == [len(text) - 1] * 5


def test_pages_are_read_there_too(patient: FeedParser) -> None:
    page = b"<link rel=alternate type=application/rss+xml href=/feed>"
    (found,) = run(patient.discover(page, url=URL))
    assert found.url == "https://example.com/feed"


def test_many_who_ask_at_once_are_all_answered(patient: FeedParser) -> None:
    async def all_of_them() -> list[ParsedFeed]:
        documents = [rss(channel=f"<ttl>{number}</ttl>").encode() for number in range(1, 51)]
        return await asyncio.gather(*(patient.parse(one, url=URL) for one in documents))

    assert [feed.ttl_minutes for feed in run(all_of_them())] == list(range(1, 51))


def test_the_worker_knows_no_secret_of_the_server(
    patient: FeedParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_TOKEN", "very-secret")
    for pid in patient.pids():  # whatever started before cannot know it, so a new one must start
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid))  # noqa: B023
    assert title_by(patient) == "One"  # one that was killed while it was idle costs no feed
    (pid,) = patient.pids()
    environment = Path(f"/proc/{pid}/environ")
    if environment.exists():
        assert b"very-secret" not in environment.read_bytes()


def test_a_feed_that_takes_too_much_time_memory_or_space_is_refused_and_the_next_is_read(
    strict: FeedParser,
) -> None:
    with pytest.raises(ParserTooSlow, match="too much time"):
        run(strict.parse(SLOW, url=URL))
    with pytest.raises(ParserOutOfMemory, match="memory"):
        run(strict.parse(LARGE, url=URL))
    with pytest.raises(FeedTooLarge, match="2,000 bytes"):
        run(strict.parse(rss(item(f"<title>{'x' * 900}</title>") * 5).encode(), url=URL))
    assert title_by(strict) == "One"


def test_a_worker_that_hangs_is_killed_and_one_that_has_read_enough_is_replaced() -> None:
    async def work() -> None:
        parser = FeedParser(workers=1, limits=Limits(wall_s=0.7, feeds_per_worker=2))
        await parser.parse(FEED, url=URL)
        (hanging,) = parser.pids()
        os.kill(hanging, signal.SIGSTOP)
        with pytest.raises(ParserTooSlow, match="was stopped"):
            await parser.parse(FEED, url=URL)
        assert not is_alive(hanging)

        await parser.parse(FEED, url=URL)
        (spent,) = parser.pids()
        await parser.parse(FEED, url=URL)
        assert not is_alive(spent)
        await parser.close()

    run(work())


def test_who_waits_for_a_worker_that_dies_is_told_and_closing_ends_the_busy() -> None:
    async def work() -> None:
        parser = FeedParser(workers=1)
        await parser.parse(FEED, url=URL)
        (dying,) = parser.pids()
        asked = await busy_with(parser, SLOW)
        os.kill(dying, signal.SIGKILL)
        with pytest.raises(ParserDied, match="unexpectedly"):
            await asked

        await parser.parse(FEED, url=URL)
        (pid,) = parser.pids()
        asked = await busy_with(parser, SLOW)
        behind = asyncio.create_task(parser.parse(FEED, url=URL))
        await asyncio.sleep(0)
        await parser.close()
        for each in (asked, behind):
            with pytest.raises(ParserDied):
                await each
        assert not is_alive(pid)
        with pytest.raises(ParserDied, match="closed"):
            await parser.parse(FEED, url=URL)

    run(work())


SERVER = f"""
import asyncio, os, signal
from headway.apps.feeds.parsing import FeedParser

async def serve():
    parser = FeedParser(workers=1)
    await parser.parse({FEED!r}, url={URL!r})
    (pid,) = parser.pids()
    print(pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(serve())
"""


def test_a_worker_ends_with_its_server_however_that_ends() -> None:
    server = subprocess.run(
        [sys.executable, "-c", SERVER], capture_output=True, text=True, timeout=30, check=False
    )
    assert server.returncode == -signal.SIGKILL, server.stderr
    pid = int(server.stdout)
    eventually(lambda: not is_alive(pid))
