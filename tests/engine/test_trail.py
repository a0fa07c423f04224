"""The trail: every transition is one row, the rows have no gaps, and each job's own rows follow
the lifecycle table, whatever is done to it.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Cancel, Fail, Pushback, Retry, Snooze, job
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.errors import HeadwayError
from headway.store.records import Query
from headway.testing import World
from tests.engine.kit import check_no_gaps, check_trail, takes, trail
from tests.stores import second_store_in_the_soak

ENDINGS = ("ok", "error", "fail", "cancel", "retry", "snooze", "pushback", "slow")
VERBS = ("cancel", "pause", "resume", "retry", "pin", "unpin")

steps = st.one_of(
    st.tuples(st.just("enqueue"), st.sampled_from(ENDINGS)),
    st.tuples(st.just("delayed"), st.sampled_from(ENDINGS)),
    st.tuples(st.just("follow"), st.integers(0, 20)),
    st.tuples(st.just("unique"), st.sampled_from(["join", "replace"])),
    st.tuples(st.just("wait"), st.integers(0, 120)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("down"), st.integers(0, 200)),
    *(st.tuples(st.just(verb), st.integers(1, 20)) for verb in VERBS),
    st.tuples(st.just("prioritise"), st.integers(1, 20)),
    st.tuples(st.just("reschedule"), st.integers(1, 20)),
    st.tuples(st.just("gate"), st.sampled_from(["pause", "resume"])),
)


class Play:
    """A world in which everything can be done to jobs that end in every way."""

    def __init__(self) -> None:
        self.app = App()
        self.app.upstream("example.com", limit=2, every="1s")
        self.work = self.app.job(upstream="example.com", retries=2, timeout="2m")(self._work)

    async def _work(self, how: str) -> object:
        await takes(1000 if how == "slow" else 3)
        job.progress(1)
        if job.attempt > 1:
            return None
        match how:
            case "error":
                raise LookupError
            case "fail":
                raise Fail("never")
            case "cancel":
                return Cancel("not wanted")
            case "retry":
                return Retry(after=20)
            case "pushback":
                return Pushback(retry_after=10)
            case "snooze" if job.saved is None:
                job.checkpoint("snoozed")
                raise Snooze(15)
        return None

    def do(self, world: World, what: str, value: object) -> None:
        app, work = self.app, self.work
        match what, value:
            case "enqueue", str(how):
                work.enqueue(how)
            case "delayed", str(how):
                work.options(delay=30, within="5m").enqueue(how)
            case "follow", int(other):
                work.options(after=other).enqueue("ok")
            case "unique", str(policy):
                call = work.options(
                    unique="k", on_conflict=policy, priority=world.now.__hash__() % 9
                )
                call.enqueue("slow")
            case "wait", int(seconds):
                world.run_for(seconds)
            case "restart", _:
                world.restart()
            case "down", int(seconds):
                world.crash()
                world.run_for(seconds)
                world.restart()
            case "prioritise", int(number):
                app.prioritise(number, number % 9)
            case "reschedule", int(number):
                app.reschedule(number, world.now + number)
            case "gate", str(verb):
                getattr(app, verb)("lane:default")
            case verb, int(number):
                getattr(app, verb)(number)


@second_store_in_the_soak
@settings(max_examples=30)
@given(st.lists(steps, max_size=25))
def test_every_trail_is_legal_complete_and_without_gaps(script: list[tuple[str, object]]) -> None:
    play = Play()
    with World(play.app) as world:
        for what, value in script:
            try:
                play.do(world, what, value)
            except (HeadwayError, IllegalTransition, UnknownTicket, ValueError):
                continue  # refused, so nothing may have changed
        world.run_for(0)
        play.app.resume("lane:default")
        for _ in range(2):  # what ran when it was asked to pause did so at its next word
            for row in play.app.store.jobs(Query(states=("paused",), limit=1000)):
                play.app.resume(row.id)
            world.run_for("1d")
        rows = play.app.store.jobs(Query(limit=1000))
        for row in rows:
            handle = play.app.handle(row.id)
            check_trail(handle)
            assert row.state in ("completed", "failed", "cancelled")
            assert row.finished_at is not None
            assert trail(handle)[0] == "submit"
            if row.state in ("failed", "cancelled"):
                assert row.error, "an end that is not good has a reason"
        check_no_gaps(play.app)
        fences = [each.fence for each in play.app.store.events(0, 100_000) if each.event == "grant"]
        assert fences == sorted(set(fences)), "each grant has the next number"


def test_operator_actions_that_move_nothing_are_rows_too() -> None:
    play = Play()
    with World(play.app) as world:
        handle = play.work.options(delay="1h").enqueue("ok")
        play.app.prioritise(handle.id, 2)
        play.app.pin(handle.id)
        play.app.reschedule(handle.id, world.now + 60)
        play.app.pause("lane:default")
        play.app.resume("lane:default")
        assert trail(handle) == ["submit", "prioritise", "pin", "reschedule"]
        gates = [each for each in play.app.store.events(0, 99) if each.subject == "lane:default"]
        assert [each.event for each in gates] == ["gate_pause", "gate_resume"]
        check_no_gaps(play.app)


def test_a_transition_names_its_time_its_fence_and_its_reason() -> None:
    play = Play()
    with World(play.app) as world:
        start = world.now
        handle = play.work.enqueue("fail")
        world.run_for("1m")
        submit, grant, fatal = handle.events()
        assert (submit.at, submit.before, submit.after) == (start, None, "queued")
        assert (grant.at, grant.before, grant.after) == (start, "queued", "running")
        assert (fatal.at, fatal.after, fatal.detail) == (start + 3, "failed", "never")
        assert 0 < grant.fence == fatal.fence
