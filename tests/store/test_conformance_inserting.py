"""Every store: jobs go in once, whole, and in order."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import DuplicateJob, HeadwayError
from headway.store import Store
from headway.store.records import NewJob, OnConflict, Query, Receipt
from tests.store.kit import T0, WAIT_S, Engine, Opener, all_jobs, job, put, put_one, unique

# What any store can hold: no lone surrogates, and no NUL, which PostgreSQL refuses.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
moments = st.floats(min_value=0, max_value=1e11)
fresh_jobs = st.builds(
    NewJob,
    texts,
    texts,
    created_at=moments,
    lane=texts,
    tenant=texts,
    key=st.none() | texts,
    upstreams=st.none() | texts,
    priority=st.integers(0, 9),
    not_before=moments,
    deadline=st.none() | moments,
    spec=st.none() | texts,
    schedule=st.none() | texts,
    batch=st.none() | st.integers(1, 9),
)

one_store_for_all_examples = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60
)


def reject(key: str) -> NewJob:
    return job(unique=unique(key, OnConflict.REJECT))


def test_a_new_store_is_empty(store: Store) -> None:
    assert all_jobs(store) == []
    assert store.count(Query()) == 0
    assert store.event_range() == (1, 0)


def test_a_job_that_is_inserted_is_there(store: Store) -> None:
    [receipt] = store.insert([job('{"to": "ann"}')])

    assert receipt == Receipt(receipt.id, joined=False)
    assert store.payload(receipt.id) == '{"to": "ann"}'


def test_what_was_inserted_survives_the_store(store: Store, open_store: Opener) -> None:
    [number] = put(store, job("[1]"))
    store.close()

    assert open_store().payload(number) == "[1]"


def test_what_was_inserted_is_seen_by_other_processes(store: Store, other: Store) -> None:
    [number] = put(store, job("[1]"))

    assert other.payload(number) == "[1]"


def test_inserting_nothing_gives_nothing(store: Store) -> None:
    assert store.insert([]) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 100])
def test_many_jobs_get_rising_numbers_in_their_order(store: Store, count: int) -> None:
    numbers = put(store, *(job(f"[{each}]") for each in range(count)))

    assert numbers == sorted(set(numbers))
    assert [store.payload(number) for number in numbers] == [f"[{each}]" for each in range(count)]


def test_numbers_rise_from_one_insert_to_the_next(store: Store, other: Store) -> None:
    numbers = [
        *put(store, *[job()] * 9),
        *put(other),
        *put(store),
        *put(other, *[job()] * 9),
    ]

    assert numbers == sorted(set(numbers))
    assert all_jobs(store) == numbers


def test_a_number_is_never_given_twice_even_after_a_purge(engine: Engine) -> None:
    store = engine.store
    first = put(store, *[job()] * 5)
    engine.commit(ended=[(number, "completed", T0, None, None) for number in first])
    store.purge(T0 + 1, T0 + 1, T0 + 1)

    assert put_one(store) > max(first)
    assert min(put(store, *[job()] * 5)) > max(first)


@pytest.mark.parametrize("special", ["unique", "after", "occurrence"])
def test_plain_and_special_jobs_mix_and_keep_their_order(store: Store, special: str) -> None:
    wanted: Any = {"unique": unique("k"), "after": (1,), "occurrence": "o"}[special]
    jobs = [job(f"[{each}]", **({special: wanted} if each == 3 else {})) for each in range(7)]

    numbers = put(store, *jobs)

    assert numbers == sorted(set(numbers))
    assert [store.payload(number) for number in numbers] == [each.args for each in jobs]


@pytest.mark.parametrize("place", [0, 3, 6])
def test_one_bad_job_among_many_stores_nothing(store: Store, place: int) -> None:
    [there] = put(store, reject("taken"))
    jobs = [job() for _ in range(6)]
    jobs.insert(place, reject("taken"))

    with pytest.raises(DuplicateJob):
        store.insert(jobs)

    assert all_jobs(store) == [there]


@pytest.mark.parametrize("count", [1, 6])
def test_what_cannot_be_stored_is_an_error_of_ours_and_stores_nothing(
    store: Store, count: int
) -> None:
    nameless: Any = None

    with pytest.raises(HeadwayError):
        store.insert([*[job()] * (count - 1), job(type=nameless)])

    assert all_jobs(store) == []


# What comes back


def test_every_field_comes_back(store: Store) -> None:
    batch = store.open_batch("b", T0)
    number = put_one(
        store,
        type="fetch",
        created_at=T0,
        lane="slow",
        tenant="acme",
        key="k",
        upstreams='["x.com"]',
        priority=2,
        not_before=T0 + 60,
        deadline=T0 + 600,
        spec='{"retries": 3}',
        unique=unique("only-me"),
        batch=batch,
        schedule="nightly",
    )

    seen = store.job(number)

    assert seen is not None
    assert seen._asdict() == {
        "id": number,
        "type": "fetch",
        "lane": "slow",
        "tenant": "acme",
        "key": "k",
        "upstreams": '["x.com"]',
        "priority": 2,
        "not_before": T0 + 60,
        "deadline": T0 + 600,
        "created_at": T0,
        "spec": '{"retries": 3}',
        "unique_key": "only-me",
        "batch": batch,
        "schedule": "nightly",
        "state": "pending",
        "since": T0,
        "pin": None,
        "fence": 0,
        "upstream": None,
        "granted_at": None,
        "waited_s": None,
        "tries": None,
        "asked": None,
        "finished_at": None,
        "error": None,
    }


def test_a_job_that_may_start_now_is_queued(store: Store) -> None:
    number = put_one(store, not_before=T0)

    assert store.states([number]) == {number: "queued"}


def test_a_job_for_later_is_pending(store: Store) -> None:
    number = put_one(store, not_before=T0 + 1)

    assert store.states([number]) == {number: "pending"}


@one_store_for_all_examples
@given(st.lists(fresh_jobs, min_size=1, max_size=6))
def test_any_jobs_come_back_as_they_went_in(store: Store, jobs: list[NewJob]) -> None:
    """One or many, which may take different ways into the store."""
    numbers = put(store, *jobs)

    for number, sent, seen in zip(numbers, jobs, store.load_some(numbers), strict=True):
        assert (number, store.payload(number)) == (seen.id, sent.args)
        for field in set(NewJob.__slots__) & set(seen._fields) - {"args"}:
            assert getattr(seen, field) == getattr(sent, field)


def test_a_large_payload_comes_back(store: Store) -> None:
    large = "[" + "7," * 1_000_000 + "7]"

    numbers = put(store, *[job(large)] * 4)

    assert [store.payload(number) == large for number in numbers] == [True] * 4


# Without waiting


class Answer:
    """What `post` has to say, and from where."""

    def __init__(self) -> None:
        self._came = threading.Event()

    def __call__(self, receipts: Any, error: BaseException | None) -> None:
        self.receipts, self.error, self.thread = receipts, error, threading.current_thread()
        self._came.set()

    def wait(self) -> Answer:
        assert self._came.wait(WAIT_S)
        return self


def test_a_posted_job_is_stored_when_the_answer_comes(store: Store) -> None:
    answer = Answer()

    store.post([job("[1]"), job("[2]")], answer)

    assert answer.wait().error is None
    assert [store.payload(receipt.id) for receipt in answer.receipts] == ["[1]", "[2]"]
    assert answer.thread is not threading.current_thread()


def test_a_posted_job_that_is_rejected_is_answered_with_the_error(store: Store) -> None:
    put(store, reject("taken"))
    answer = Answer()

    store.post([reject("taken")], answer)

    assert isinstance(answer.wait().error, DuplicateJob)
    assert answer.receipts is None


def test_many_posts_are_all_answered(store: Store) -> None:
    answers = [Answer() for _ in range(200)]

    for each in answers:
        store.post([job()], each)

    numbers = [each.wait().receipts[0].id for each in answers]
    assert sorted(numbers) == all_jobs(store)


def test_posts_are_answered_before_the_store_is_closed(open_store: Opener) -> None:
    store = open_store()
    answers = [Answer() for _ in range(20)]
    for each in answers:
        store.post([job()], each)

    store.close()

    assert [each.wait().error for each in answers] == [None] * 20


def test_an_answer_may_insert_the_next_job(store: Store) -> None:
    answer, after = Answer(), Answer()

    def insert_another(receipts: Any, error: BaseException | None) -> None:
        answer(receipts, error)
        after(store.insert([job("[2]")]), None)

    store.post([job("[1]")], insert_another)

    assert store.payload(after.wait().receipts[0].id) == "[2]"


def test_an_answer_that_fails_harms_nobody_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = Answer()
    monkeypatch.setattr(threading, "excepthook", lambda args: reported(None, args.exc_value))

    def fail(*_: Any) -> None:
        raise RuntimeError("the fault of the caller")

    store.post([job()], fail)
    assert str(reported.wait().error) == "the fault of the caller"

    answer = Answer()
    store.post([job()], answer)
    assert answer.wait().error is None
    assert len(all_jobs(store)) == 2


# After the end


def test_a_closed_store_takes_nothing_and_says_so(store: Store) -> None:
    store.close()

    with pytest.raises(HeadwayError, match="closed"):
        store.insert([job()])


@pytest.mark.parametrize("posted_before", [0, 1])
def test_a_closed_store_answers_a_post_with_an_error(store: Store, posted_before: int) -> None:
    for _ in range(posted_before):
        answer = Answer()
        store.post([job()], answer)
        answer.wait()
    store.close()
    late = Answer()

    store.post([job()], late)

    assert isinstance(late.wait().error, HeadwayError)


def test_a_closed_store_shows_nothing_and_says_so(store: Store) -> None:
    number = put_one(store)
    store.close()

    with pytest.raises(HeadwayError, match="closed"):
        store.job(number)


def test_closing_twice_is_harmless(store: Store) -> None:
    store.close()
    store.close()
