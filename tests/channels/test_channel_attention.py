"""Which channels and budgets need attention."""

from __future__ import annotations

from types import SimpleNamespace

from headway import App
from headway.api.attention import Attention
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import API
from headway.apps.channels.money.budgets import span_of
from tests.channels.batch_world import MODEL, ChannelsWorld, refusal
from tests.channels.test_budgets import PRICE, Spending


def said(world: ChannelsWorld, tenant: str | None = None) -> dict[str, Attention]:
    world.channels.site = SimpleNamespace(app=world.app)  # type: ignore[assignment]
    items = world.channels.attention(tenant, world.now)
    return {f"{each.kind} {each.subject[1]}": each for each in items}


def test_a_channel_without_a_key_and_one_whose_key_is_refused() -> None:
    with Spending(App()) as world:
        world.channel()
        assert set(said(world)) == {"channel_no_key c1"}
        channel = Channel("c1", MODEL, "http://127.0.0.1:1/v1")
        put = world.channels.directory.put
        world.channels.batches.turn(lambda now: put(channel, "sk-distinctive-attention", API, now))
        assert said(world) == {}
        world.provider.says = lambda _text, _time: refusal(401)
        world.ask("ann")
        world.run_for(5)
        refused = said(world)["channel_key_refused c1"]
        assert (refused.level, refused.values["status"]) == ("bad", 401)
        assert refused.until is not None
        assert "distinctive" not in str(said(world))
        assert said(world, "ann") == {}, "keys are not the tenants' affair"


def test_budgets_that_are_nearly_or_wholly_used_up() -> None:
    with Spending(App()) as world:
        world.channel(price=PRICE, enabled=True)
        world.allow("ann", calls=10, period="day")
        world.allow("bob", calls=100)
        for number in range(9):
            world.ask("ann", f"text {number}")
        world.ask("bob")
        world.run_for(30)
        low = said(world, "ann")["budget_low ann"]
        assert (low.values["percent"], low.values["period"]) == (90, "day")
        world.ask("ann", "the last")
        world.run_for(30)
        used_up = said(world)["budget_used_up ann"]
        assert used_up.until == span_of("day", world.now)[1]
        assert "is used up; its calls wait until 20" in used_up.text
        assert said(world, "bob") == {}
