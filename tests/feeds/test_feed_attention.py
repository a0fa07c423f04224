"""Which feeds need attention, for operators and for those who read them."""

from __future__ import annotations

from headway.apps.feeds.fetching_answers import Kind
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed

BAD, GONE, GOOD = (f"https://{name}.example/feed" for name in ("bad", "gone", "good"))


def said(world: FeedsWorld, tenant: str | None) -> dict[str, tuple[int, list[str]]]:
    world.feeds.attentive._until = 0.0
    items = world.feeds.attention(tenant, world.now)
    return {each.kind: (each.values["count"], each.values["names"]) for each in items}


def test_feeds_that_fail_again_and_again_and_those_that_are_gone() -> None:
    with FeedsWorld() as world:
        world.web.sites[GOOD] = Site([entry(1)])
        world.web.sites[BAD] = Site(failure=failed(Kind.NOT_FOUND, 404))
        world.web.sites[GONE] = Site(failure=failed(Kind.GONE, 410))
        for url in (GOOD, BAD, GONE):
            world.subscribe(url)
        world.subscribe(BAD, tenant="bob")
        world.run_for("1m")
        assert said(world, None) == {"feeds_gone": (1, ["gone.example"])}, "once is the weather"
        world.run_for("12h")
        all_of_it = {"feeds_failing": (1, ["bad.example"]), "feeds_gone": (1, ["gone.example"])}
        assert said(world, None) == said(world, "ann") == all_of_it
        assert said(world, "bob") == {"feeds_failing": (1, ["bad.example"])}
        assert said(world, "carol") == {}
