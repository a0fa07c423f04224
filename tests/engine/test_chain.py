"""The chain of a schedule: whatever happens and whenever, no occurrence is lost or doubled."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Every, Pushback
from headway.store.records import Query
from headway.testing import World
from tests.engine.kit import Diary, check_no_gaps, check_trail, takes
from tests.stores import second_store_in_the_soak

INTERVAL_S = 100.0

actions = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 300)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("down"), st.integers(0, 400)),
    st.tuples(
        st.sampled_from(["pause", "resume", "again", "changed", "gone and back"]), st.just(0)
    ),
    st.tuples(st.sampled_from(["cancel", "retry"]), st.integers(0, 3)),
)


def open_jobs(app: App) -> list[int]:
    return [
        row.id
        for state in ("pending", "queued", "running", "paused")
        for row in app.store.jobs(Query(schedule="s", states=(state,)))
    ]


def due_at(app: App, job: int) -> float:
    """When an occurrence was due: it was granted then, or will be."""
    for event in app.handle(job).events():
        if event.event == "grant":
            return event.at
    return app.handle(job).row().not_before


@second_store_in_the_soak
@settings(max_examples=25)
@given(st.lists(actions, max_size=12), st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_whatever_happens_the_chain_goes_on_once_and_in_phase(
    script: list[tuple[str, int]], fates: list[int]
) -> None:
    app, diary = App(), Diary()

    @app.job(retries=1, retry_delay="7s", upstream="example.com", key="s")
    async def tick(n: int) -> object:
        diary.note(n)
        await takes([0, 5, 130, 1][fates[len(diary.rows) % 30]])
        match fates[len(diary.rows) % 30]:
            case 1:
                raise LookupError
            case 3:
                return Pushback(retry_after=20)
        return None

    with World(app) as world:
        diary.begin(world)
        version = 0

        def declare() -> None:
            app.schedule("s", tick.call(version), Every(INTERVAL_S, anchor_at=world.now // 1e9))

        declare()
        retried: set[int] = set()
        paused = False
        for what, number in script:
            match what:
                case "wait":
                    world.run_for(number)
                case "restart":
                    world.restart()
                case "down":
                    world.crash()
                    world.run_for(number)
                    world.restart()
                case "pause" | "resume":
                    paused = what == "pause"
                    (app.pause_schedule if paused else app.resume_schedule)("s")
                case "again":
                    declare()
                case "changed":
                    version += 1
                    declare()
                case "gone and back":
                    app.unschedule("s")
                    declare()
                    paused = False
                case "cancel":
                    for job in open_jobs(app)[:1]:
                        app.cancel(job)
                case "retry":
                    ended = app.store.jobs(Query(schedule="s", states=("failed",)))
                    for row in ended[number : number + 1]:
                        app.retry(row.id)
                        retried.add(row.id)
            world.run_for(0)
        app.resume_schedule("s")
        world.run_for("1h")  # whatever was retried or stopped has ended
        fates[:] = [0] * 30  # from here on all is well
        world.run_for(5 * INTERVAL_S)
        seen = len(diary.rows)
        began = diary.now
        world.run_for(10 * INTERVAL_S)
        assert len(open_jobs(app)) == 1, "one open occurrence"
        assert len(diary.rows) - seen in (9, 10, 11), "and it runs at its interval"
        after = [at for at in diary.times if at > began + 2 * INTERVAL_S]
        assert len({round(at % INTERVAL_S, 2) for at in after}) == 1, "in phase"
        assert {name for at, name in diary.rows if at > began + 200} == {version}
        for row in app.store.jobs(Query(schedule="s", limit=10_000)):
            check_trail(app.handle(row.id))
        check_no_gaps(app)


@second_store_in_the_soak
@settings(max_examples=40)
@given(st.integers(0, 400), st.integers(1, 4))
def test_a_crash_at_any_moment_neither_loses_nor_doubles_an_occurrence(
    moment_s: int, crashes: int
) -> None:
    app = App()
    ends: list[float] = []

    @app.job()
    async def tick() -> None:
        await takes(30)
        ends.append(world.now)

    with World(app) as world:
        start = world.now
        app.schedule("s", tick.call(), Every(INTERVAL_S, anchor_at=start))
        for _ in range(crashes):
            world.run_for(moment_s)
            world.restart()
        world.run_until(start + 2500.0)
        rows = app.store.jobs(Query(schedule="s", limit=1000))
        due = {round(due_at(app, row.id) - start) // 100 for row in rows}
        states = {row.state for row in rows}
        assert states <= {"completed", "pending", "running", "queued", "failed"}
        completed = [row for row in rows if row.state == "completed"]
        assert len(ends) == len(completed), "each occurrence ended once"
        assert len(open_jobs(app)) == 1
        assert len(due) == len(rows), "no occurrence twice"
