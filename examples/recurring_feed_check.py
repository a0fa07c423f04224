"""Feeds that are checked every half hour, spread over it, and left alone when they fail.

A day passes in a moment, because the program runs in `headway.testing.World`: everything in it is
real except the clock. One of the feeds is down in the morning, so its interval grows, and shrinks
again when it is back. In the middle of the day the engine crashes and is started again an hour
later; no feed loses its turn and none is checked twice for what was slept through.

    python examples/recurring_feed_check.py
"""

from __future__ import annotations

from collections import Counter

from headway import App, Every
from headway.testing import World

FEEDS = [f"https://feeds.example/{name}" for name in ("news", "weather", "recipes", "sports")]
BROKEN = FEEDS[-1]
HOUR_S = 3600.0

app = App()
app.upstream("feeds.example", every="1s")
checks: Counter[str] = Counter()
START_AT = 1_767_225_600.0  # the first of January 2026
BACK_AT = START_AT + 6 * HOUR_S  # when the broken feed answers again


@app.job(type="check", upstream="feeds.example", key=lambda url: url)
def check_feed(url: str) -> int:
    """Fetch a feed; here it only counts, and one feed does not answer."""
    checks[url] += 1
    if url == BROKEN and app.now() < BACK_AT:
        raise ConnectionError("no answer")
    return checks[url]


def main() -> None:
    with World(app, at=START_AT) as world:
        for url in FEEDS:
            rule = Every(HOUR_S / 2, growth=2.0, max_s=4 * HOUR_S)
            app.schedule(url, check_feed.call(url), rule)

        world.run_for("6h")
        row = {each.name: each for each in app.schedules()}[BROKEN]
        print(f"the broken feed failed {row.strikes} times in a row, and was given time")

        world.run_for("6h")
        world.crash()
        world.run_for("1h")  # nobody is there
        world.restart()
        world.run_for("11h")

        for row in app.schedules():
            print(f"{row.name}: {checks[row.name]} checks, {row.strikes} failures in a row")
        missed = sum(each.missed for each in app.schedules())
        print(f"slept through: {missed} checks, made up for once each")


if __name__ == "__main__":
    main()
