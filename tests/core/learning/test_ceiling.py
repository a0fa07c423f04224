"""The curve: start, cruise, probe; and what each kind of refusal makes of the ceiling."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.learning import refusal as refusals
from headway.core.learning.ceiling import MARGIN, Ceiling, Phase, Shape, Sight
from headway.core.learning.refusal import Cause, Last, Refusal


def sight(now: float, mean: float, *, limited_s: float = 1.0, online: float = 0.0) -> Sight:
    return Sight(now, limited_s, mean, mean, online, online, online, online, 0.0)


def drive(ceiling: Ceiling, seconds: int, *, online: float = 0.0, start: int = 0) -> None:
    """Everything that may go does, and is borne."""
    for second in range(start, start + seconds):
        ceiling.pass_time(sight(float(second), ceiling.rate, online=online), 1.0)


def refused(rpm: float, now: float = 100.0, **more: bool) -> Refusal:
    said = {"half_open": False, "beside_online": False} | more
    return Refusal(now, rpm, rpm / 60, 1000.0, said["half_open"], said["beside_online"])


def test_it_starts_with_one_call_a_second_and_doubles_in_ten() -> None:
    ceiling = Ceiling()
    assert ceiling.rate == 1.0
    drive(ceiling, 10)
    assert 1.8 < ceiling.rate < 2.2


def test_beside_online_calls_it_grows_far_more_slowly() -> None:
    alone, beside = Ceiling(), Ceiling()
    drive(alone, 60)
    drive(beside, 60, online=1.0)
    assert beside.rate < alone.rate / 3


def test_idle_time_moves_nothing() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    rate = ceiling.rate
    for second in range(3600):
        ceiling.pass_time(sight(float(second), 0.0, limited_s=0.0), 1.0)
    assert (ceiling.rate, ceiling.phase, ceiling.top) == (rate, Phase.CRUISE, 10.0)


def test_it_cruises_just_below_the_ceiling_then_probes() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    drive(ceiling, 40)
    assert ceiling.rate == 10.0 * (1 - MARGIN)
    drive(ceiling, 60, start=40)
    assert ceiling.phase is Phase.PROBE


def test_only_growth_clearly_above_the_ceiling_is_news() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    drive(ceiling, 400)
    assert ceiling.phase is Phase.START, "it has risen: grow quickly again"


def test_nothing_is_tried_beside_heavy_online_traffic() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    drive(ceiling, 2000, online=6.0)
    assert ceiling.phase is Phase.CRUISE


def test_a_failed_probe_confirms_and_the_quiet_time_doubles() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    ceiling.phase = Phase.PROBE
    quiet_s = ceiling.quiet_s(sight(0.0, 10.0))
    why = refused(612)
    assert refusals.cause(why, Last(), ceiling) is Cause.CONFIRMED
    refusals.confirmed(why, ceiling)
    assert ceiling.top is not None
    assert 10.0 <= ceiling.top < 10.1
    assert ceiling.quiet_s(sight(0.0, 10.0)) == min(2 * quiet_s, 120.0)


def test_the_first_refusal_names_the_ceiling() -> None:
    ceiling = Ceiling()
    why = refused(600, beside_online=True)
    assert refusals.cause(why, Last(), ceiling) is Cause.FOUND
    refusals.found(why, ceiling)
    assert ceiling.top == 10.0
    assert ceiling.phase is Phase.CRUISE


def test_nothing_through_since_the_last_one_is_a_full_window() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(20.0)
    last = Last(at=95.0, count=600.0, total=998.0)
    why = refused(600)
    assert refusals.cause(why, last, ceiling) is Cause.BLOCKED
    refusals.blocked(why, last, ceiling, 1)
    assert (ceiling.shape, ceiling.top) == (Shape.WINDOW, 10.0)


def test_saturated_from_one_refusal_to_the_next_gives_the_rate_of_a_bucket() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(20.0)
    ceiling.shape = Shape.BUCKET
    last = Last(at=90.0, count=600.0, total=900.0, phase=Phase.CRUISE, low=20.0)
    why = refused(900)
    assert refusals.cause(why, last, ceiling) is Cause.DELIVERED
    refusals.delivered(why, last, ceiling)
    assert ceiling.top == 0.97 * 10.0


def test_refused_where_it_was_borne_before_it_comes_down_and_keeps_distance() -> None:
    ceiling = Ceiling()
    ceiling.begin_at(10.0)
    ceiling.phase = Phase.CRUISE
    why = refused(540)
    assert refusals.cause(why, Last(), ceiling) is Cause.LOWER
    refusals.lower(why, ceiling)
    assert ceiling.top == 0.98 * 9.0
    assert ceiling.margin > MARGIN


@given(
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 2000), st.booleans()), max_size=30),
    st.floats(0.5, 40),
)
def test_whatever_comes_the_ceiling_stays_above_nothing(
    events: list[tuple[float, float, bool]], top: float
) -> None:
    """Lesson 35: an estimate never becomes 0, and the rate never more than is shown."""
    ceiling, last, now = Ceiling(), Last(), 0.0
    ceiling.begin_at(top)
    for gap_s, rpm, half_open in events:
        now += gap_s
        ceiling.pass_time(sight(now, rpm / 60, limited_s=gap_s), gap_s)
        why = refused(rpm, now, half_open=half_open)
        refusals.learn(why, last, ceiling, 0)
        ceiling.pass_time(sight(now, rpm / 60, limited_s=0.0), 0.0)
        assert ceiling.top is not None
        assert ceiling.top > 0
        assert 0 < ceiling.rate < 1e6


def test_what_it_knows_survives_as_plain_data() -> None:
    ceiling, other = Ceiling(), Ceiling()
    assert ceiling.dump() is None
    ceiling.begin_at(12.5)
    ceiling.confirmed, ceiling.shape = 3, Shape.WINDOW
    ceiling.banned()
    state = ceiling.dump()
    assert state is not None
    other.load(state)
    assert (other.top, other.confirmed, other.shape) == (12.5, 3, Shape.WINDOW)
    assert other.wary_s > 0
    assert other.rate == 0.7 * 12.5, "not at full speed after a restart"
