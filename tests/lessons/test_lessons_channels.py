"""Lessons 37 to 39 of docs/lessons.md, as far as channels are concerned."""

from __future__ import annotations

from tests.channels.batch_world import channels_world, names, refusal, well
from tests.contract.calls_kit import OWN, answered, ask, channel, provider, receiver
from tests.contract.gateway_kit import Desk, RawClient, chat, free_again, providers
from tests.contract.kit import Api
from tests.hands.kit import eventually
from tests.servers import server_on


def test_lesson_39_a_stream_that_never_starts_leaves_no_permit_behind() -> None:
    """A stream's permit leaked when the stream never started."""
    with server_on("sqlite") as server, providers() as (first, second), Api(server.url) as api:
        desk = Desk(api, first, second)
        model, code = desk.one()
        first.set(latency_ms=60_000)  # no stream ever starts here
        callers = [RawClient(desk.url, chat(model, stream=True)) for _ in range(10)]
        eventually(lambda: desk.leases(code) == 10)
        for caller in callers:
            caller.hang_up()
        free_again(desk, code)
        eventually(lambda: first.stats()["in_flight"] == 0, within_s=5.0)
        for _ in range(10):  # and at once, before anything can have been asked
            RawClient(desk.url, chat(model, stream=True)).hang_up()
        eventually(lambda: first.stats()["in_flight"] == 0, within_s=5.0)
        free_again(desk, code)
        assert desk.bills(model) == []


def test_lesson_38_a_bill_is_there_once_whatever_happens_after_the_answer() -> None:
    """Costs were summed in memory and flushed each minute: lost on a crash, doubled on a race."""
    with server_on("sqlite") as server, provider() as upstream, Api(server.url) as api:
        _, model = channel(api, upstream)
        for id in [ask(api, model) for _ in range(5)]:
            answered(api, id)
        server.kill()  # right after the last one was acknowledged
        server.start()
        assert api.get("/api/costs/bills", model=model)["total"] == 5
        (row,) = api.get("/api/costs", model=model, group="model")["items"]
        assert row["calls"] == upstream.stats()["calls"] == 5


def test_lesson_39_whoever_is_to_be_told_is_a_part_of_the_call() -> None:
    """The callback was registered after the task was queued; the answer could come first."""
    with (
        server_on("sqlite", outbound_allow=OWN) as server, receiver() as hook,
        provider(latency_ms=0) as upstream, Api(server.url) as api,
    ):  # fmt: skip
        _, model = channel(api, upstream)
        ids = [ask(api, model, callback_url=hook.url) for _ in range(20)]
        for id in ids:
            (message,) = hook.wait_for(id)
            assert message.said["status"] == "completed"
        hook.answers.append((503, {"Retry-After": "1"}))
        late = ask(api, model, callback_url=hook.url)
        hook.wait_for(late)
        server.kill()  # it has ended, and nobody has taken the news
        server.start()
        assert hook.wait_for(late, 2)[1].said["status"] == "completed"


def test_lesson_37_lines_of_a_batch_leave_a_provider_alone_that_has_just_said_no() -> None:
    """429 hot loops: retry at once against an upstream that had just said no."""
    with channels_world() as world:
        world.channel(at_once=1)
        world.provider.takes_s = 0.1
        world.provider.says = lambda text, time: (
            refusal(429, retry_after="20") if time == 1 and text == "line-0" else well(text)
        )
        batch = world.batch(10)
        world.until(batch, "completed")
        first, second, *_ = [at for at, _ in world.provider.calls]
        assert second - first >= 20
        assert world.answers(batch) == names(10)


def test_lesson_38_a_crash_neither_loses_nor_doubles_what_the_lines_of_a_batch_cost() -> None:
    """Costs were summed in memory and flushed each minute: lost on a crash, doubled on a race."""
    with channels_world() as world:
        world.channel(at_once=5)
        batch = world.batch(30)
        world.run_for(2.5)
        assert world.count("llm_bills") == 10  # each with the commit that ended its line
        world.restart()
        assert world.count("llm_bills") == 10
        world.until(batch, "completed")
        assert world.count("llm_bills") == 30
        assert sum(world.provider.answered.values()) == 30
