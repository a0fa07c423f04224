"""Workers elsewhere ask for jobs of types that this process cannot run itself."""

from __future__ import annotations

import pytest

from headway import App
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.demand import MAX_TAKERS
from headway.engine.hands.remote import RemoteHands, Taker
from headway.testing import World
from tests.engine.kit import Diary, check_trail, states, trail
from tests.engine.workers import Worker, asking, brain_of, put


def deaf(_works: list[RemoteWork], _stops: list[RemoteStop]) -> None:
    """For requests whose answer does not matter."""


def test_a_worker_gets_a_job_as_plain_data_and_completes_it(app: App) -> None:
    app.upstream("img.example", limit=1)
    with World(app) as world:
        handle = put(
            app, args='{"name":"a.png"}', tenant="ann", key="k", lane="wide",
            upstreams='["img.example"]',
        )  # fmt: skip
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        assert work == RemoteWork(
            handle.id, work.fence, "resize", '{"name":"a.png"}', 1, "img.example", "ann", "k",
            "wide", 300.0, 90.0, None,
        )  # fmt: skip
        assert handle.state == "running"
        assert worker.complete(work, result='{"size":3}') == "completed"
        assert handle.result() == {"size": 3}
        assert trail(handle) == ["submit", "grant", "ok"]
        check_trail(handle)


def test_a_waiting_worker_hears_of_a_job_in_the_turn_that_takes_it_in(app: App) -> None:
    with World(app) as world:
        worker = Worker(app)
        worker.take()
        world.run_for("1h")
        assert worker.answers == 0, "there was nothing to say"
        handle = put(app)
        world.run_for(0)
        assert [work.id for work in worker.works] == [handle.id]
        put(app)
        world.run_for("1m")
        assert worker.answers == 1, "a request is answered once"


def test_a_worker_that_waits_costs_no_turns(app: App) -> None:
    with World(app) as world:
        Worker(app).take(size=5)
        brain, turns = brain_of(app), 0
        turn = brain.turn

        def counted() -> float:
            nonlocal turns
            turns += 1
            return turn()

        brain.turn = counted  # type: ignore[method-assign]
        world.run_for("1h")
        assert turns < 150, "only the clock's own: sweeps, and looks at what is known"


def test_nobody_gets_more_than_it_asked_for_whatever_others_want(app: App) -> None:
    with World(app) as world:
        for type in "abcd":
            for _ in range(10):
                put(app, type)
        world.run_for(1)
        broad, narrow = Worker(app, "broad"), Worker(app, "narrow")

        def both(remote: RemoteHands, now: float) -> None:
            remote.take(Taker("broad", "abc", 3, broad.hear), now)
            remote.take(Taker("narrow", "d", 5, narrow.hear), now)

        asking(app, both)
        assert len(broad.works) == 3
        assert {work.type for work in broad.works} <= set("abc")
        assert [work.type for work in narrow.works] == ["d"] * 5


def test_a_job_goes_to_the_worker_that_can_do_less(app: App) -> None:
    with World(app) as world:
        both, one = Worker(app, "both"), Worker(app, "one")
        both.take("ab")
        one.take("a")
        put(app, "a")
        put(app, "b")
        world.run_for(0)
        assert [work.type for work in one.works] == ["a"]
        assert [work.type for work in both.works] == ["b"]


def test_workers_that_can_do_the_same_are_served_first_come_first_served(app: App) -> None:
    with World(app) as world:
        first, second = Worker(app, "first"), Worker(app, "second")
        first.take(size=2)
        second.take(size=2)
        handles = [put(app) for _ in range(3)]
        world.run_for(0)
        assert [work.id for work in first.works] == [handle.id for handle in handles[:2]]
        assert [work.id for work in second.works] == [handles[2].id]


def test_workers_with_as_many_types_take_turns(app: App) -> None:
    with World(app) as world:
        left, right = Worker(app, "left"), Worker(app, "right")
        left.take("ab", size=4)
        right.take("ac", size=4)
        for _ in range(4):
            put(app, "a")
        world.run_for(0)
        assert (len(left.works), len(right.works)) == (2, 2)


# --- order


def test_the_best_of_all_types_goes_first_wherever_it_waited(app: App) -> None:
    with World(app) as world:
        low, high = put(app, "a", priority=7), put(app, "b", priority=2)
        middle = put(app, "c", priority=5)
        world.run_for(1)
        worker = Worker(app)
        assert worker.taken("z") == []  # some stand elsewhere now than others
        assert worker.taken("az") == worker.works
        asking(app, lambda remote, now: remote.give_back(worker.works, now))
        order = [worker.taken("abc")[0].id for _ in range(3)]
        assert order == [high.id, middle.id, low.id]


def test_a_job_that_came_before_the_request_counts_in_its_turn(app: App) -> None:
    with World(app) as world:
        put(app, "a", priority=7)
        world.run_for(1)
        better = put(app, "b", priority=1)  # stored, and not looked at yet
        (work,) = Worker(app).taken("ab")
        assert work.id == better.id


def test_jobs_here_and_elsewhere_stand_in_one_order_at_an_upstream(app: App, diary: Diary) -> None:
    app.upstream("api", limit=1)

    @app.job(upstream="api")
    async def local() -> None:
        diary.note("local")

    with World(app) as world:
        diary.begin(world)
        worker = Worker(app)
        put(app, upstreams='["api"]', priority=1)
        world.run_for(1)
        (held,) = worker.taken(size=5)
        local.options(priority=5).enqueue()
        better = put(app, upstreams='["api"]', priority=2)
        worse = put(app, upstreams='["api"]', priority=9)
        world.run_for(1)
        worker.take(size=1)
        worker.complete(held)
        world.run_for(1)
        assert [work.id for work in worker.works[1:]] == [better.id]
        assert diary.names == [], "it was not its turn"
        worker.take(size=1)
        worker.complete(worker.works[-1])
        world.run_for(1)
        assert diary.names == ["local"]
        assert worker.works[-1].id == worse.id


def test_a_job_that_no_worker_asks_for_keeps_nobody_from_going(app: App, diary: Diary) -> None:
    app.upstream("api", limit=1)
    app.lane("default", limit=1)

    @app.job(upstream="api")
    async def local() -> None:
        diary.note("local")

    with World(app) as world:
        diary.begin(world)
        put(app, upstreams='["api"]', priority=1)
        worker = Worker(app)
        for _ in range(20):  # long enough for it to be passed over again and again
            worker.leave(worker.take(size=0))
            local.enqueue()
            world.run_for(10)
        assert len(diary.rows) == 20


def test_tenants_share_workers_fairly(app: App) -> None:
    with World(app) as world:
        for tenant in ("greedy", "greedy", "greedy", "greedy", "greedy", "modest", "modest"):
            put(app, tenant=tenant)
        world.run_for(1)
        worker = Worker(app)
        served = []
        for _ in range(4):
            (work,) = worker.taken()
            served.append(work.tenant)
            world.run_for(10)
            worker.complete(work)
        assert sorted(served) == ["greedy", "greedy", "modest", "modest"]


def test_keys_and_paces_hold_for_jobs_elsewhere(app: App) -> None:
    app.upstream("slow", every="10s")
    with World(app) as world:
        keyed = [put(app, key="k") for _ in range(2)]
        paced = [put(app, "b", upstreams='["slow"]') for _ in range(2)]
        worker = Worker(app)
        world.run_for(1)
        first = worker.taken(("resize", "b"), size=10)
        assert {work.id for work in first} == {keyed[0].id, paced[0].id}
        world.run_for(11)
        assert [work.id for work in worker.taken(("resize", "b"), size=10)] == [paced[1].id]
        worker.complete(next(work for work in first if work.key == "k"))
        assert [work.id for work in worker.taken(size=10)] == [keyed[1].id]


def test_operators_may_limit_and_pause_all_work_elsewhere(app: App) -> None:
    app.tool("hands:remote", limit=1)
    with World(app) as world:
        first, second = put(app), put(app, "b")
        world.run_for(1)
        worker = Worker(app)
        worker.take(("resize", "b"), size=5)
        assert [work.id for work in worker.works] == [first.id]
        app.pause("tool:hands:remote")
        worker.complete(worker.works[0])
        worker.take(("resize", "b"), size=5)
        world.run_for(1)
        assert len(worker.works) == 1
        app.resume("tool:hands:remote")
        world.run_for(1)
        assert worker.works[-1].id == second.id


def test_whatever_is_set_for_the_gate_of_a_type_a_worker_is_needed_too(app: App) -> None:
    with World(app) as world:
        handles = [put(app), put(app)]
        world.run_for(1)
        app.set("tool:work:resize", limit=1)
        app.open("tool:work:resize")
        world.run_for(1)
        assert states(handles) == ["queued", "queued"]
        assert len(Worker(app).taken(size=2)) == 1


# --- leaving, giving back


def test_who_has_left_gets_nothing(app: App) -> None:
    with World(app) as world:
        worker = Worker(app)
        taker = worker.take()
        assert worker.leave(taker)
        assert not worker.leave(taker)
        handle = put(app)
        world.run_for(1)
        assert (worker.answers, handle.state) == (0, "queued")


@pytest.mark.parametrize("taken_first", [True, False])
def test_leaving_and_being_served_exclude_each_other(app: App, taken_first: bool) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        taker = Taker("w1", ["resize"], 1, worker.hear)

        def take(now: float) -> None:
            brain_of(app).remote.take(taker, now)

        def leave(now: float) -> bool:
            return brain_of(app).remote.leave(taker, now)

        brain = brain_of(app)
        if taken_first:
            brain.ask(take)
            brain.turn()
            left = brain.ask(leave)
        else:
            brain.ask(take)
            left = brain.ask(leave)
        brain.turn()
        assert left.result(0) is not taken_first
        assert len(worker.works) == (1 if taken_first else 0)
        if taken_first:
            asking(app, lambda remote, now: remote.give_back(worker.works, now))
        assert handle.state == "queued"
        (again,) = worker.taken()
        assert again.attempt == 1, "nothing was burnt"


def test_what_cannot_be_delivered_comes_back(app: App) -> None:
    def broken(_works: list[RemoteWork], _stops: list[RemoteStop]) -> None:
        raise RuntimeError("the loop of this request is closed")

    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        asking(app, lambda remote, now: remote.take(Taker("w1", ["resize"], 1, broken), now))
        world.run_for(1)
        assert handle.state == "queued"
        assert trail(handle) == ["submit", "grant", "return"]
        assert len(Worker(app).taken()) == 1


def test_a_job_that_was_cancelled_before_it_was_dealt_goes_nowhere(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        brain = brain_of(app)
        taker = Taker("w1", ["resize"], 1, worker.hear)
        brain.ask(lambda now: brain.remote.take(taker, now))
        brain.ask(lambda now: brain.controls.cancel(handle.id, now))
        brain.turn()
        assert (handle.state, worker.answers) == ("cancelled", 0)


def test_a_payload_that_is_gone_fails_its_job_and_frees_its_worker(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        brain = brain_of(app)
        brain.at_hand.take(handle.id)
        errands = app.store.errands
        app.store.errands = lambda _ids: []  # type: ignore[method-assign,assignment]
        worker = Worker(app)
        worker.take()
        world.run_for(1)
        assert (handle.state, worker.answers, worker.works) == ("failed", 1, [])
        app.store.errands = errands  # type: ignore[method-assign]


# --- bounds


@pytest.mark.parametrize(
    ("types", "size"),
    [
        ([], 1), (["a"], -1), (["a"], 1_001), (["a"], True), (["a"], 1.5), ([""], 1), ([1], 1),
        ([f"t{n}" for n in range(1_001)], 1), (["x" * 501], 1),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(types: list[str], size: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        Taker("w1", types, size, deaf)


def test_only_so_many_may_wait(app: App) -> None:
    with World(app):
        takers = [Taker("w", ["a"], 1, deaf) for _ in range(MAX_TAKERS + 1)]

        def crowd(remote: RemoteHands, now: float) -> None:
            for taker in takers:
                remote.take(taker, now)

        with pytest.raises(ValueError, match="ask again later"):
            asking(app, crowd)


def test_only_so_many_different_sets_of_types_may_wait(app: App) -> None:
    with World(app):
        takers = [Taker("w", [f"{n}-{each}" for each in range(1_000)], 1, deaf) for n in range(251)]

        def crowd(remote: RemoteHands, now: float) -> None:
            for taker in takers:
                remote.take(taker, now)

        with pytest.raises(ValueError, match="different sets"):
            asking(app, crowd)
