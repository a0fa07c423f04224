"""Every store: which jobs a query finds, compared with what Python says."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.store import Store
from headway.store.records import Job, Query
from tests.store.kit import T0, Engine, ended, granted, job, moved, put, put_one

# What has a meaning in LIKE, in JSON, in SQL, or in a language.
NASTY = ["%", "_", "50%", "a_b", "\\", "\\%", "'", '"', "?", "%s", "$1", "--", "é", "É", "ß", "😀",
         "\\u0000", "\\n", "\n", "[", "{", "x.com", "X.COM", "a", "A", "", "0", "1.0", "null",
         "\u2028", "\uffff", "a.b", "$.labels", "\u0131", "\u0130", "\u212a"]  # fmt: skip
IMPOSSIBLE = ["\x00", "a\x00b", "\ud800", "x.com\x00", "\udfff😀"]


def found(store: Store, query: Query) -> list[int]:
    numbers = [each.id for each in store.jobs(query)]
    assert store.count(query) == len(numbers)
    return numbers


def names(*upstreams: str) -> str:
    return msgspec.json.encode(upstreams).decode()


def labels(**pairs: Any) -> str:
    return msgspec.json.encode({"labels": pairs}).decode()


# Upstreams


def test_a_job_is_found_by_the_upstream_it_was_granted_or_may_be(engine: Engine) -> None:
    store = engine.store
    one, either, _, gone = put(
        store,
        job(upstreams=names("x.com")),
        job(upstreams=names("y.com", "x.com")),
        job(upstreams=names("x.com.au")),
        job(),
    )
    engine.commit(granted=[granted(gone, upstream="x.com"), granted(either, upstream="y.com")])

    assert found(store, Query(upstream="x.com")) == [gone, either, one]
    assert found(store, Query(upstream="y.com")) == [either]
    assert found(store, Query(upstream="com")) == []


def test_the_name_of_an_upstream_is_only_a_name(store: Store) -> None:
    put(store, job())
    wanted = put(store, *(job(upstreams=names("first", name)) for name in NASTY))
    escaped = put(store, *(job(upstreams=json.dumps([name], ensure_ascii=True)) for name in NASTY))

    for name, *numbers in zip(NASTY, escaped, wanted, strict=True):
        assert found(store, Query(upstream=name)) == numbers, name


# Pins


def test_what_was_put_to_the_front_is_found(engine: Engine) -> None:
    plain, pinned = put(engine.store, job(), job())
    engine.commit(moved=[moved(pinned, "queued", pin=1), moved(plain, "queued")])
    assert found(engine.store, Query(pinned=True)) == [pinned]
    assert found(engine.store, Query(pinned=True, states=("paused",))) == []


# Errors


def fail(engine: Engine, *errors: str | None) -> list[int]:
    numbers = put(engine.store, *[job()] * len(errors))
    rows = zip(numbers, errors, strict=True)
    engine.commit(ended=[ended(number, "failed", error=error) for number, error in rows])
    return numbers


def test_an_error_is_found_by_a_part_of_it_in_any_case(engine: Engine) -> None:
    refused, timeout, _ = fail(engine, "Connection REFUSED by x.com", "timeout", None)

    assert found(engine.store, Query(error="refused")) == [refused]
    assert found(engine.store, Query(error="CONNECTION")) == [refused]
    assert found(engine.store, Query(error="Timeout")) == [timeout]
    assert found(engine.store, Query(error="E")) == [timeout, refused]
    assert found(engine.store, Query(error="")) == [timeout, refused]
    assert found(engine.store, Query(error="no such thing")) == []


def test_failures_are_counted_by_type_with_the_newest_error(engine: Engine) -> None:
    store = engine.store
    asked = [("a", "acme"), ("a", "acme"), ("b", ""), ("a", ""), ("b", "acme")]
    numbers = put(store, *(job(type=type, tenant=tenant) for type, tenant in asked))
    ends = [("failed", T0), ("failed", T0 + 2), ("failed", T0 + 3), ("failed", T0 + 4),
            ("completed", T0 + 5)]  # fmt: skip
    engine.commit(ended=[ended(number, state, at, error=f"error {place}") for place, (number, (
        state, at)) in enumerate(zip(numbers, ends, strict=True))])  # fmt: skip
    wanted = [("a", 2, T0 + 2, numbers[3], "error 3"), ("b", 1, T0 + 3, numbers[2], "error 2")]
    assert store.failures(T0 + 1) == wanted
    assert store.failures(T0, "acme") == [("a", 2, T0, numbers[1], "error 1")]
    assert store.failures(T0 + 9) == store.failures(T0, "no\x00body") == []


def fold(text: str) -> str:
    """Only A to Z have another case, on whatever machine."""
    return "".join(each.lower() if each.isascii() else each for each in text)


def test_nothing_in_a_search_stands_for_anything_else(engine: Engine) -> None:
    errors = [f"<{each}>" for each in NASTY]
    numbers = fail(engine, *errors)

    for part in NASTY:
        wanted = [n for n, each in zip(numbers, errors, strict=True) if fold(part) in fold(each)]
        assert found(engine.store, Query(error=part)) == wanted[::-1], part


def test_a_long_search_is_no_error(engine: Engine) -> None:
    [number] = fail(engine, "x" * 200_000)

    assert found(engine.store, Query(error="X" * 100_000)) == [number]
    assert found(engine.store, Query(error="%" * 100_000)) == []


# Labels


def test_a_job_is_found_by_all_of_its_labels(store: Store) -> None:
    both, first, _, _ = put(
        store,
        job(spec=labels(site="x", kind="page")),
        job(spec=labels(site="x")),
        job(spec=labels(site="y", kind="page")),
        job(),
    )

    assert found(store, Query(labels=(("site", "x"),))) == [first, both]
    assert found(store, Query(labels=(("site", "x"), ("kind", "page")))) == [both]
    assert found(store, Query(labels=(("site", "x"), ("site", "y")))) == []
    assert found(store, Query(labels=(("site", "x"), ("site", "x")))) == [first, both]
    assert found(store, Query(labels=(("x", "site"),))) == []


def test_labels_are_only_text(store: Store) -> None:
    others = [(one, other) for one in NASTY for other in NASTY if other != one]
    put(store, *(job(spec=labels(**{other: one, "k": other})) for one, other in others))
    specs = [{name: "v", "k" + name: name} for name in NASTY]
    wanted = put(store, *(job(spec=labels(**each)) for each in specs))
    escaped = put(store, *(job(spec=json.dumps({"labels": each})) for each in specs))

    for spec, *numbers in zip(specs, escaped, wanted, strict=True):
        assert found(store, Query(labels=tuple(spec.items()))) == numbers, spec


NO_LABELS = ["", "no json", "[]", "{}", "5", "null", '{"labels": null}', '{"labels": ["a", "1"]}',
             '{"labels": "a"}', '{"labels": {"a": 1}}', '{"labels": {"a": null}}', '{"a": "1"}',
             '{"labels": {"a": ["1"]}}', '{"labels": {"A": "1"}}',
             '{"labels.a": "1"}']  # fmt: skip


def test_what_is_no_label_is_not_found_and_disturbs_nobody(store: Store) -> None:
    put(store, *(job(spec=spec, upstreams=spec) for spec in NO_LABELS))
    wanted = put_one(store, spec=labels(a="1"), upstreams=names("x.com"))

    assert found(store, Query(labels=(("a", "1"),))) == [wanted]
    assert found(store, Query(upstream="x.com")) == [wanted]


def test_a_label_that_a_store_cannot_read_does_not_hide_the_others(store: Store) -> None:
    """PostgreSQL keeps NUL in JSON text, and cannot take it out."""
    wanted = put_one(store, spec=labels(**{"a": "1", "b": "x\x00", "c": "\\u0000", "\x00": "y"}))

    assert found(store, Query(labels=(("a", "1"), ("c", "\\u0000")))) == [wanted]
    assert found(store, Query(labels=(("b", "x"),))) == []


# Times


def test_times_are_from_a_moment_on_and_below_another(engine: Engine) -> None:
    store = engine.store
    numbers = put(store, *(job(created_at=T0 + each) for each in range(4)))
    engine.commit(ended=[ended(number, at=T0 + 10 + at) for at, number in enumerate(numbers[:3])])
    first, second, third, still_open = numbers

    assert found(store, Query(created_after=T0 + 2)) == [still_open, third]
    assert found(store, Query(created_before=T0 + 2)) == [second, first]
    assert found(store, Query(created_after=T0 + 1, created_before=T0 + 2)) == [second]
    assert found(store, Query(finished_after=T0 + 11)) == [third, second]
    assert found(store, Query(finished_before=T0 + 11)) == [first]
    assert found(store, Query(finished_before=math.inf)) == [third, second, first]
    assert found(store, Query(created_after=-math.inf)) == numbers[::-1]


@pytest.mark.parametrize("name", ["created", "finished"])
def test_no_time_is_before_or_after_no_number(engine: Engine, name: str) -> None:
    engine.commit(ended=[ended(put_one(engine.store))])

    assert found(engine.store, Query(**{f"{name}_after": math.nan})) == []
    assert found(engine.store, Query(**{f"{name}_before": math.nan})) == []


# Numbers


def test_jobs_are_found_by_number(store: Store) -> None:
    first, second, third = put(store, *[job()] * 3)

    assert found(store, Query(ids=(first, third, first))) == [third, first]
    assert found(store, Query(ids=())) == []
    assert found(store, Query(ids=(2**63, -(10**30), second))) == [second]
    assert found(store, Query(ids=(10**30,))) == []
    assert found(store, Query(ids=tuple(range(100_000)))) == [third, second, first]


def test_pages_below_a_number_stay_as_they_are(store: Store) -> None:
    numbers = put(store, *[job()] * 4)
    page = [each.id for each in store.jobs(Query(limit=2))]
    put(store)

    assert found(store, Query(below=page[-1])) == numbers[1::-1]
    assert found(store, Query(below=numbers[0])) == []
    assert len(found(store, Query(below=10**30))) == 5
    assert found(store, Query(below=-(10**30))) == []


def test_no_job_is_of_a_batch_that_cannot_be(store: Store) -> None:
    put_one(store, batch=1)

    for batch in (2**63, -(2**63) - 1, 10**30):
        assert found(store, Query(batch=batch)) == [], batch


def test_a_page_that_nobody_can_turn_to_is_empty(store: Store) -> None:
    put(store, job(), job())

    assert store.jobs(Query(offset=10**30)) == []
    assert len(store.jobs(Query(limit=10**30))) == 2
    assert store.jobs(Query(limit=0)) == store.jobs(Query(limit=-1)) == []
    assert len(store.jobs(Query(offset=-5))) == 2


# Whatever is asked for

TEXTS = ["type", "lane", "tenant", "key", "schedule", "upstream", "error"]


def test_text_that_cannot_be_stored_is_nowhere(engine: Engine) -> None:
    fail(engine, "x.com")

    for name, text in product(TEXTS, IMPOSSIBLE):
        assert found(engine.store, Query(**{name: text})) == [], (name, text)


def test_states_and_labels_that_cannot_be_stored_are_nowhere(store: Store) -> None:
    number = put_one(store, spec=labels(a="1"))

    for text in IMPOSSIBLE:
        assert found(store, Query(states=(text,))) == []
        assert found(store, Query(states=(text, "queued"))) == [number]
        assert found(store, Query(labels=((text, "1"),))) == []
        assert found(store, Query(labels=(("a", text),))) == []
        assert found(store, Query(labels=(("a", "1"), ("a", text)))) == []


words = st.sampled_from([*NASTY, "nobody"])
maybe = st.none() | words
moments = st.none() | st.sampled_from([T0, T0 + 1, T0 + 2])
pairs = st.dictionaries(words, words, max_size=2)
made = st.fixed_dictionaries(
    {
        "type": words,
        "lane": words,
        "tenant": words,
        "key": maybe,
        "batch": st.none() | st.integers(1, 2),
        "schedule": maybe,
        "upstreams": st.none() | st.lists(words, min_size=1, max_size=3).map(json.dumps),
        "spec": st.none() | pairs.map(lambda each: labels(**each)),
        "created_at": st.sampled_from([T0, T0 + 1]),
    }
)
fates = st.sampled_from([None, "completed", "failed", "cancelled"])
queries = st.builds(
    Query,
    states=st.just(()) | st.tuples(st.sampled_from(["queued", "failed", "completed"])),
    type=maybe,
    lane=maybe,
    tenant=maybe,
    key=maybe,
    batch=st.none() | st.integers(1, 3),
    schedule=maybe,
    upstream=maybe,
    error=maybe,
    labels=pairs.map(lambda each: tuple(each.items())),
    created_after=moments,
    created_before=moments,
    finished_after=moments,
    finished_before=moments,
    limit=st.just(1_000_000),
)


def narrowed(query: Query, kept: set[str]) -> Query:
    """Only some of what it asks for, or it would never find anything."""
    return Query(**{name: getattr(query, name) for name in {*kept, "limit"}})


def is_meant(query: Query, job: Job) -> bool:
    """What a query says, in Python."""
    asked = json.loads(job.spec)["labels"] if job.spec else {}
    candidates = [*json.loads(job.upstreams or "[]"), job.upstream]
    same = ("type", "lane", "tenant", "key", "batch", "schedule")
    return (
        all(getattr(query, name) in (None, getattr(job, name)) for name in same)
        and (not query.states or job.state in query.states)
        and (query.upstream is None or query.upstream in candidates)
        and (query.error is None or fold(query.error) in fold(job.error or "\x00"))
        and (query.error is None or job.error is not None)
        and all(asked.get(name) == value for name, value in query.labels)
        and _is_within(job.created_at, query.created_after, query.created_before)
        and _is_within(job.finished_at, query.finished_after, query.finished_before)
    )


def _is_within(at: float | None, after: float | None, before: float | None) -> bool:
    if after is None and before is None:
        return True
    return at is not None and (after or 0) <= at < (math.inf if before is None else before)


NAMES = [*TEXTS, "states", "batch", "labels", "created_after", "created_before", "finished_after",
         "finished_before"]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(st.tuples(made, fates, maybe), min_size=1, max_size=6),
    st.lists(
        st.tuples(queries, st.sets(st.sampled_from(NAMES), min_size=1, max_size=2)),
        min_size=1,
        max_size=6,
    ),
)
def test_a_query_finds_what_it_says(
    engine: Engine,
    rows: list[tuple[dict[str, Any], str | None, str | None]],
    asked: list[tuple[Query, set[str]]],
) -> None:
    store = engine.store
    numbers = put(store, *(job(**fields) for fields, _, _ in rows))
    fields = list(zip(numbers, rows, strict=True))
    engine.commit(
        granted=[granted(n, upstream=text) for n, (_, _, text) in fields],
        ended=[ended(n, fate, T0 + 1, error=text) for n, (_, fate, text) in fields if fate],
    )
    everything = store.jobs(Query(limit=1_000_000))

    for query, kept in asked:
        wanted = narrowed(query, kept)
        assert found(store, wanted) == [each.id for each in everything if is_meant(wanted, each)]
