"""How heartbeats and reports are put into requests: nothing twice, nothing left out, in order."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import Outcome
from headway.engine.hands import RemoteWork
from headway.remote import beating, completing
from headway.remote.desk import Held, Notes

sizes = st.lists(st.integers(0, 3_000_000), max_size=40)


def held(fence: int) -> Held:
    work = RemoteWork(fence, fence, "x", "{}", 1, None, "", None, "default", 60.0, 90.0, None)
    return Held(work, True, 0.0)


@given(sizes)
def test_every_heartbeat_is_in_one_request(checkpoints: list[int]) -> None:
    said: list[tuple[Held, Notes]] = []
    for fence, size in enumerate(checkpoints, 1):
        said.append((held(fence), {"checkpoint": msgspec.Raw(b"1" * size)} if size else {}))
    found = beating.chunks(said)
    assert [each for some in found for each in some] == said
    for some in found:
        many = sum(len(bytes(notes.get("checkpoint", b""))) for _, notes in some)
        assert len(some) <= beating.MAX_JOBS
        assert len(some) <= 1 or many <= beating.MAX_BYTES


def test_a_request_has_a_bounded_number_of_jobs() -> None:
    said: list[tuple[Held, Notes]] = [(held(fence), {}) for fence in range(1, 1_202)]
    assert [len(some) for some in beating.chunks(said)] == [500, 500, 201]


@given(sizes, st.sets(st.integers(0, 39)))
def test_reports_go_in_order_as_many_as_fit(results: list[int], talking: set[int]) -> None:
    ended: dict[int, Held] = {}
    for fence, size in enumerate(results):
        each = ended[fence] = held(fence)
        each.outcome, each.result = Outcome.ok(), "1" * size
        if fence in talking:
            each.note("logs", (0.0, "info", "last words"))
    sent: list[int] = []
    while picked := completing.pick(ended.values()):
        assert len(picked) <= completing.MAX_JOBS
        assert len(picked) == 1 or sum(len(each.result or "") for each in picked) <= (
            completing.MAX_BYTES
        )
        for each in picked:
            sent.append(each.fence)
            del ended[each.fence]
    assert sent == [fence for fence in range(len(results)) if fence not in talking]
    assert set(ended) == talking & set(range(len(results)))  # who has last words waits


notes = st.lists(
    st.one_of(
        st.tuples(st.just("progress"), st.integers(0, 9).map(lambda n: (float(n), None, "", 0.0))),
        st.tuples(st.just("checkpoints"), st.integers(0, 9).map(lambda n: (str(n), 0.0))),
        st.tuples(st.just("logs"), st.integers(0, 9).map(lambda n: (0.0, "info", str(n)))),
        st.tuples(st.just("send"), st.none()),
        st.tuples(st.just("arrives"), st.booleans()),
    ),
    min_size=8,
)


@settings(max_examples=300)
@given(notes)
def test_whatever_gets_lost_on_the_way_every_line_arrives_and_the_last_word_counts(
    steps: list[tuple[str, Any]],
) -> None:
    each = held(1)
    wanted: dict[str, Any] = {"logs": []}
    arrived: dict[str, Any] = {"logs": []}
    on_the_way: list[Notes] = []  # one request at a time

    def send() -> None:
        if not on_the_way:
            on_the_way.append(each.take_notes())

    def arrive(well: bool) -> None:
        said = on_the_way.pop() if on_the_way else {}
        if not well:
            each.put_back(said)
            return
        arrived["logs"] += [line["line"] for line in said.pop("logs", [])]
        arrived.update(said)

    for kind, value in steps:
        match kind:
            case "send":
                send()
            case "arrives":
                arrive(value)
            case _:
                each.note(kind, value)
        if kind == "progress":
            wanted["progress"] = {"done": value[0], "total": None, "note": ""}
        elif kind == "checkpoints":
            wanted["checkpoint"] = msgspec.Raw(value[0].encode())
        elif kind == "logs":
            wanted["logs"].append(value[2])
    arrive(well=True)
    send()
    arrive(well=True)
    assert arrived == wanted
    assert each.noted_at is None
