"""One Chromium and one server for all tests of this process; a window of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from tests.browser import chromium as system
from tests.browser.kit import Chromium, Visits
from tests.browser.kit import expect_status as expecting
from tests.browser.worlds import SETTINGS, fill
from tests.security.kit import Guarded, guarded_on
from tests.servers import Server, server_on

PageOn = Callable[..., Page]
ExpectStatus = Callable[..., None]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    if system.found() is None:
        if system.must_be_there():
            pytest.fail(system.MISSING)
        pytest.skip(system.MISSING)
    started = Chromium()
    yield started
    started.close()


@pytest.fixture
def visits(chromium: Chromium) -> Iterator[Visits]:
    with chromium.in_use():
        opened = Visits(chromium)
        yield opened
        opened.end()


@pytest.fixture
def page_on(visits: Visits) -> PageOn:
    return visits.page_on


@pytest.fixture
def expect_status(visits: Visits) -> ExpectStatus:
    """`expect_status(page, 409)`: the server will refuse something once."""
    return lambda page, *statuses: expecting(page, visits, *statuses)


@pytest.fixture(scope="session")
def site() -> Iterator[Server]:
    """A server with something of everything in it. Tests use names of their own for what they
    change.
    """
    with server_on("sqlite", **SETTINGS) as server:
        fill(server)
        yield server


@pytest.fixture(scope="session")
def guarded_site() -> Iterator[Guarded]:
    """One that asks who is there: `page_on(guarded_site, token=guarded_site.tokens["reader"])`."""
    with guarded_on("sqlite") as guarded:
        yield guarded
