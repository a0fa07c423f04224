"""Figures, sentences and the page: what is said is what happened, and nothing can run in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headway.simulation import Report
from headway.simulation.comparing import facts, verdict
from headway.simulation.document import document
from headway.simulation.report import jain, percentile
from headway.simulation.wording import duration, nice_top, percent
from tests.simulation.kit import backlog, per_minute, run, site, tenant, upstream

EVIL = '"><script>alert(1)</script>&amp;'


@pytest.fixture(scope="module")
def pair() -> list[Report]:
    tenants = (tenant(EVIL, process=backlog(200)), tenant("ben", process=backlog(100)))
    model = upstream(per_minute(30), errors=0.02)
    found = [run(site(limit=4), model, *tenants), run(site(learn=True), model, *tenants)]
    found[0].name, found[1].name = "plain", EVIL
    return found


@given(some.lists(some.floats(0.001, 1e6), min_size=2, max_size=20))
def test_fairness_is_between_one_for_all_and_one_for_one(values: list[float]) -> None:
    index = jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain([3.0] * len(values)) == pytest.approx(1.0)


@given(some.lists(some.floats(0, 1e6), min_size=1), some.floats(0.01, 1.0))
def test_a_percentile_is_a_value_that_so_many_are_not_above(
    values: list[float], share: float
) -> None:
    found = percentile(sorted(values), share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.44, "0.4 s"), (59.6, "60 s"), (200, "3 min 20 s"), (3600, "1 h"),
     (18_200, "5 h 3 min"), (187_200, "2 d 4 h"), (None, "-")],
)  # fmt: skip
def test_times_read_as_people_say_them(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_scales_end_at_round_numbers() -> None:
    assert [nice_top(value) for value in (0, 0.07, 1, 60, 120, 151, 9_000)] == [
        1, pytest.approx(0.075), 1, 75, 150, 200, 10_000,
    ]  # fmt: skip
    assert (percent(0.0412), percent(0.41), percent(None)) == ("4.1 %", "41 %", "-")


def test_the_verdict_says_how_much_sooner_and_at_which_price() -> None:
    slow = run(site(limit=1), upstream(hold_s=10.0), tenant(process=backlog(60)))
    fast = run(site(limit=2), upstream(hold_s=10.0), tenant(process=backlog(60)))
    slow.name, fast.name = "one", "two"
    first, *rest = verdict(slow, fast)
    assert first == "two finishes 50 % sooner (5 min, not 10 min)."
    assert any(line.startswith("The median wait is shorter with two") for line in rest)
    assert verdict(slow, slow) == [
        "one does the same as one: no figure differs by more than 2 %.",
    ]
    finish = next(each for each in facts(fast, slow) if each.what == "finish")
    assert finish.better is False


def test_runs_that_saw_different_times_are_not_compared(pair: list[Report]) -> None:
    cut = msgspec.structs.replace(pair[1], stopped="asked")
    assert facts(pair[0], cut) == []
    assert verdict(pair[0], cut) == [
        "They were stopped at different times, so they cannot be compared."
    ]


def test_the_verdict_counts_refusals(pair: list[Report]) -> None:
    said = " ".join(verdict(pair[1], pair[0]))
    assert re.search(r"plain .*\d+ refusals instead of \d+", said)


def test_the_page_is_well_formed_and_nothing_in_it_runs_or_is_loaded(pair: list[Report]) -> None:
    text = document(pair, f"A title {EVIL}", [f"A note {EVIL}"])
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    for element in root.iter():
        assert element.tag not in {"script", "link", "img", "iframe", "object", "embed", "base"}
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name not in {"src", "href", "style", "action"}, (element.tag, name, value)
    assert not re.search(r"https?:|url\(|@import|javascript:", text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")


def test_each_figure_has_a_sentence_and_a_name(pair: list[Report]) -> None:
    root = ElementTree.fromstring(document(pair, "It", []).removeprefix("<!DOCTYPE html>\n"))
    figures = list(root.iter("figure"))
    assert len(figures) >= 8
    for figure in figures:
        (picture,) = figure.iter("svg")
        assert picture.attrib["role"] == "img"
        assert picture.attrib["aria-label"]
        assert (figure.findtext("p") or "").endswith(".")


def test_both_runs_are_drawn_on_the_same_scale(pair: list[Report]) -> None:
    root = ElementTree.fromstring(document(pair, "It", []).removeprefix("<!DOCTYPE html>\n"))
    tops: dict[str, set[str]] = {}
    for figure in root.iter("figure"):
        name = figure.findtext("figcaption") or ""
        tops.setdefault(name, set()).update(
            span.text or "" for span in figure.iter("span") if span.attrib["class"] == "top"
        )
    assert tops
    assert all(len(each) == 1 for each in tops.values())
