"""Payloads: what is taken is what will fit, and what is refused is refused before it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App
from headway.errors import BadJob, PayloadTooLarge
from headway.testing import World
from tests.engine.kit import Diary
from tests.stores import second_store_in_the_soak


@dataclass
class Video:
    id: int
    title: str


def test_arguments_arrive_as_the_types_that_the_handler_names(app: App) -> None:
    seen: list[object] = []

    @app.job()
    def work(video: Video, when: datetime, sizes: tuple[int, ...], note: str | None = None) -> None:
        seen.extend([video, when, sizes, note])

    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with World(app) as world:
        handle = work.enqueue(Video(1, "ü"), when, (1, 2))
        world.run_for(0)
        assert handle.state == "completed"
    assert seen == [Video(1, "ü"), when, (1, 2), None]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("one",), {}, "int"),
        ((), {}, "missing"),
        ((1, "x", 3), {}, "2 arguments by place"),
        ((1,), {"n": 2}, "n twice"),
        ((1,), {"colour": "red"}, "colour"),
        ((1.5,), {}, "int"),
        ((None,), {}, "int"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored(
    app: App, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    @app.job()
    def work(n: int, name: str = "") -> None: ...

    with World(app), pytest.raises(BadJob, match=message):
        work.enqueue(*args, **kwargs)
    with World(app):
        assert app.store.event_range() == (1, 0)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        [1.0, {"deep": [float("-inf")]}],
        object(),
        "\ud800",
        {1j: 1},
        lambda: None,
    ],
)
def test_what_json_cannot_say_is_refused(app: App, value: object) -> None:
    @app.job()
    def work(anything: Any) -> None: ...

    with World(app), pytest.raises(BadJob, match="do not fit"):
        work.enqueue(value)


def test_a_number_that_is_none_may_be_none_but_not_nan(app: App) -> None:
    @app.job()
    def work(rate: float | None) -> object:
        return rate

    with World(app) as world:
        handle = work.enqueue(None)
        world.run_for(0)
        assert handle.result() is None
        with pytest.raises(BadJob, match="no number nan"):
            work.enqueue(float("nan"))


def test_a_payload_that_is_too_large_is_refused() -> None:
    app = App(payload_limit=1000)

    @app.job()
    def work(text: str) -> None: ...

    with World(app):
        work.enqueue("x" * 900)
        with pytest.raises(PayloadTooLarge, match="store it elsewhere"):
            work.enqueue("x" * 1000)


@pytest.mark.parametrize(
    "source",
    ["def f(*args): ...", "def f(**kwargs): ...", "def f(a, /): ..."],
)
def test_a_handler_whose_arguments_have_no_names_is_refused(app: App, source: str) -> None:
    names: dict[str, Any] = {}
    exec(source, names)
    with pytest.raises(TypeError, match="stored by name"):
        app.job()(names["f"])


def test_two_jobs_of_one_type_are_refused(app: App) -> None:
    app.job(type="same")(lambda: None)
    with pytest.raises(ValueError, match="two jobs have the type 'same'"):
        app.job(type="same")(lambda: None)


def test_a_payload_that_no_longer_fits_fails_with_a_clear_error(app: App, diary: Diary) -> None:
    @app.job(type="work")
    def old(colour: str) -> None: ...

    newer = App()

    @newer.job(type="work")
    def new(colour: int, size: int) -> None:
        diary.note((colour, size))

    with World(app) as world:
        world.crash()
        handle = old.enqueue("red")
        world.app.registry.types["work"] = newer.registry.types["work"]
        world.restart()
        world.run_for("1d")
        assert handle.state == "failed"
        assert "does not fit the handler of 'work' any more" in str(handle.row().error)
        assert [event.event for event in handle.events()][-1] == "fatal"
    assert diary.rows == []


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 2.5},
        {"priority": 10**12},
        {"priority": "high"},
        {"weight": 0},
        {"weight": float("inf")},
        {"cost": -1},
        {"cost": float("inf")},
        {"lane": ""},
        {"lane": 5},
        {"tenant": None},
        {"key": 5},
        {"ordered": "pass"},
        {"ordered": "sometimes", "key": "k"},
        {"traffic": "online"},
        {"labels": {"a": 1}},
        {"tools": "disk"},
        {"at": float("inf")},
        {"at": float("nan")},
        {"at": -1.0},
        {"deadline": float("inf")},
        {"delay": 1, "at": 1e9},
        {"delay": -1},
        {"delay": "10"},
        {"unique": True, "on_conflict": "hope"},
        {"unique": True, "unique_while": "never"},
        {"upstream": ""},
        {"upstream": ("a", "a")},
        {"colour": "red"},
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_stored(
    app: App, options: dict[str, Any]
) -> None:
    @app.job()
    def work() -> None: ...

    with World(app):
        with pytest.raises(ValueError):  # noqa: PT011 - each says something else
            work.options(**options).enqueue()
        assert app.store.job(1) is None


@pytest.mark.parametrize(
    "what", [{"key": lambda: 5}, {"tenant": lambda: None}, {"unique": lambda: 7}]
)
def test_a_function_that_names_no_text_is_refused(app: App, what: dict[str, Any]) -> None:
    @app.job(**what)
    def work() -> None: ...

    with World(app), pytest.raises(BadJob, match="must be text"):
        work.enqueue()


def test_an_ordered_job_needs_a_key_for_its_arguments(app: App) -> None:
    @app.job(key=lambda name: name or None, ordered="hold")
    def work(name: str) -> None: ...

    with World(app):
        work.enqueue("ann")
        with pytest.raises(BadJob, match="no key"):
            work.enqueue("")


def test_a_row_that_makes_no_sense_to_this_engine_does_not_stop_it(app: App) -> None:
    """Any version of any program may have written it."""

    @app.job()
    def work() -> str:
        return "fine"

    with World(app) as world:
        broken = [work.call() for _ in range(4)]
        broken[0].spec = '{"labels":{"a":1}}'
        broken[1].spec = '{"traffic":"sideways"}'
        broken[2].priority = 2 * 10**9  # every store takes it
        broken[3].upstreams = "not a list"
        handles = [app.enqueue(call) for call in broken]
        good = work.enqueue()
        world.run_for(1)
        assert good.result() == "fine"
        for handle in handles:
            assert handle.state == "cancelled"
            assert "this engine cannot take the job" in str(handle.row().error)
        world.restart()
        world.run_for(1)
        assert work.enqueue().id == 6


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**90), 2**90) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@second_store_in_the_soak
@settings(max_examples=40)
@given(st.lists(json_values, min_size=1, max_size=5))
def test_any_json_comes_back_as_it_went_in(values: list[Any]) -> None:
    app = App()

    @app.job()
    def echo(value: Any) -> Any:
        return value

    with World(app) as world:
        handles = [echo.enqueue(value) for value in values]
        world.run_for(0)
        assert [handle.result() for handle in handles] == values


def test_a_function_gets_the_arguments_that_it_names_defaults_included(app: App) -> None:
    @app.job(
        upstream=lambda host: host,
        key=lambda page: f"page {page}",
        tenant=lambda **everything: ",".join(sorted(everything)),
    )
    def fetch(host: str, page: int = 1) -> None: ...

    with World(app):
        row = fetch.enqueue("example.com").row()
        assert (row.upstreams, row.key, row.tenant) == ('["example.com"]', "page 1", "host,page")
