"""A second between two requests is one for the site, and not only in our plans."""

from __future__ import annotations

from headway.apps.feeds.spacing import MOST_KEPT, Spacing
from tests.feeds.kit_site import FEED, moved, run, visited
from tests.net.kit import says


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_next_request_is_as_far_away_from_the_last_as_it_should_be() -> None:
    clock = Clock()
    spacing = Spacing(clock)
    assert spacing.wait_s("a.example", 1.0) == 0.0
    assert spacing.wait_s("b.example", 1.0) == 0.0
    clock.now += 0.25
    assert spacing.wait_s("a.example", 1.0) == 0.75
    assert spacing.wait_s("a.example", 0.25) == 0.0  # somebody has set another pace
    clock.now += 0.5
    assert spacing.wait_s("a.example", 1.0) == 0.5
    assert spacing.wait_s("b.example", 1.0) == 0.25


def test_who_has_waited_and_was_overtaken_waits_again() -> None:
    clock = Clock()
    spacing = Spacing(clock)
    spacing.wait_s("a.example", 1.0)
    assert spacing.wait_s("a.example", 1.0) == spacing.wait_s("a.example", 1.0) == 1.0
    clock.now += 1.0
    assert spacing.wait_s("a.example", 1.0) == 0.0
    assert spacing.wait_s("a.example", 1.0) == 1.0


def test_hosts_of_long_ago_are_forgotten() -> None:
    clock = Clock()
    spacing = Spacing(clock)
    for number in range(MOST_KEPT + 1):
        spacing.wait_s(f"{number}.example", 1.0)
    assert spacing.wait_s("0.example", 1.0) == 0.0
    assert spacing.wait_s(f"{MOST_KEPT}.example", 1.0) == 1.0


def test_each_request_waits_for_the_word_when_there_is_a_connection() -> None:
    async def work() -> None:
        seen = []

        async def leaving(url: str) -> None:
            seen.append((url, here.site.connections, len(here.site.heads)))

        pages = {"/old": moved(301, "/new"), "/new": says(FEED)}
        async with visited(pages) as here:
            came = await here.fetch("/old", leaving=leaving)
            assert came.body == FEED
        # There is one, and nothing was said there yet.
        assert seen == [(here.at("/old"), 1, 0), (here.at("/new"), 2, 1)]

    run(work)
