"""The plain estimate for people who know it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.learning.history import History, Source

RPM = st.floats(0, 1e5)


def test_three_levels_and_headers_before_them() -> None:
    history = History()
    assert history.capacity(50.0, None).source is Source.OPEN
    history.borne(500.0)
    peak = history.capacity(300.0, None)
    assert (peak.source, peak.rpm) == (Source.PEAK, 350.0)
    assert round(peak.remaining, 3) == 0.143
    history.refused(10.0, 400.0, 800.0)
    found = history.capacity(380.0, None)
    assert (found.source, found.rpm) == (Source.HISTORY, 400.0)
    assert round(found.remaining, 3) == 0.05
    assert history.capacity(380.0, 1000.0).source is Source.HEADERS


def test_slow_answers_make_it_more_careful() -> None:
    history = History()
    history.refused(10.0, 400.0, 20_000.0)
    assert history.capacity(0.0, None).rpm == 200.0


@given(st.lists(st.tuples(RPM, st.floats(0, 1e6)), max_size=40), RPM, st.none() | RPM)
def test_remaining_is_a_share_whatever_happens(
    refusals: list[tuple[float, float]], load_rpm: float, told_rpm: float | None
) -> None:
    history = History()
    for rpm, response_ms in refusals:
        history.refused(0.0, rpm, response_ms)
    found = history.capacity(load_rpm, told_rpm)
    assert 0.0 <= found.remaining <= 1.0
    assert found.rpm is None or found.rpm >= 1.0


def test_it_survives_as_plain_data() -> None:
    history, other = History(), History()
    assert history.dump() is None
    for number in range(30):
        history.refused(float(number), 100.0 + number, 500.0)
    history.borne(129.0)
    state = history.dump()
    assert state is not None
    other.load(state)
    assert other.fitted_rpm() == history.fitted_rpm()
    assert len(other.points) == 20
