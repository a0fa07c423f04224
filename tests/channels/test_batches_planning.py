"""Every line of a batch is looked at before the first one runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headway.apps.channels.batches.planning import Fault, read_line
from tests.channels.batch_world import CHAT, MODEL, ChannelsWorld, channels_world, line, names


@pytest.fixture
def world() -> Iterator[ChannelsWorld]:
    with channels_world() as started:
        started.channel()
        yield started


def checked(text: str | None, longest: int = 10_000, deepest: int = 20) -> str:
    return read_line(text, CHAT, lambda model: model == MODEL, longest, deepest)


def test_a_line_that_can_be_sent() -> None:
    assert checked(json.dumps(line("a"))) == "a"
    assert checked(json.dumps(line("ü" * 512))) == "ü" * 512


def wrong_body(**changes: Any) -> str:
    body = {**line("a")["body"], **changes}
    return json.dumps(line("a", body=body))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_json_line"),
        ("[]", "invalid_json_line"),
        ("12", "invalid_json_line"),
        ("[" * 100 + "]" * 100, "invalid_json_line"),
        ('{"custom_id": "\\ud800"}', "invalid_json_line"),
        (json.dumps({"method": "POST"}), "invalid_custom_id"),
        (json.dumps(line("")), "invalid_custom_id"),
        (json.dumps(line("x" * 513)), "invalid_custom_id"),
        (json.dumps({**line("x"), "custom_id": 5}), "invalid_custom_id"),
        (json.dumps(line("x\0")), "invalid_custom_id"),
        (json.dumps(line("x", method="GET")), "invalid_method"),
        (json.dumps(line("x", url="/v1/embeddings")), "mismatched_url"),
        (json.dumps(line("x", body="hello")), "invalid_body"),
        (wrong_body(model="unknown"), "model_not_found"),
        (wrong_body(model=None), "model_not_found"),
        (wrong_body(stream=True), "streaming_not_supported"),
        (wrong_body(user="x" * 10_000), "line_too_large"),
        (None, "line_too_large"),
    ],
)
def test_a_line_that_cannot(text: str | None, code: str) -> None:
    with pytest.raises(Fault) as caught:
        checked(text)
    assert caught.value.code == code
    assert str(caught.value)


def refused(world: ChannelsWorld, text: str) -> list[dict[str, Any]]:
    """What is said of a file that is not as it should be: nothing of it runs."""
    batch = world.batch(text)
    done = world.until(batch, "failed", within_s=10)
    assert world.provider.calls == []
    assert world.count("jobs", "type = 'llm.line'") == 0
    assert done["failed_at"] is not None
    assert (done["output_file_id"], done["error_file_id"]) == (None, None)
    assert done["request_counts"] == {"total": 0, "completed": 0, "failed": 0}
    assert done["errors"]["object"] == "list"
    found: list[dict[str, Any]] = done["errors"]["data"]
    return found


def test_each_fault_is_told_with_its_line(world: ChannelsWorld) -> None:
    lines = [json.dumps(line(name)) for name in ("a", "b", "a")]
    text = "\n".join([lines[0], "no json", "", lines[1], lines[2], wrong_body(model="nobody")])
    found = refused(world, text)
    assert [(each["line"], each["code"]) for each in found] == [
        (2, "invalid_json_line"), (5, "duplicate_custom_id"), (6, "model_not_found"),
    ]  # fmt: skip
    assert [each["param"] for each in found] == [None, "custom_id", "body.model"]
    assert "nobody" in found[-1]["message"]


def test_the_first_hundred_faults_are_enough(world: ChannelsWorld) -> None:
    assert [each["line"] for each in refused(world, "x\n" * 500)] == list(range(1, 101))


def test_a_file_without_a_line(world: ChannelsWorld) -> None:
    (fault,) = refused(world, "\n\n")
    assert (fault["code"], fault["line"]) == ("empty_file", None)


def test_a_file_with_too_many(world: ChannelsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.apps.channels.batches.planning.MOST_LINES", 10)
    text = "".join(json.dumps(line(name)) + "\n" for name in names(11))
    (fault,) = refused(world, text)
    assert fault["code"] == "too_many_lines"


def test_a_model_whose_channels_take_no_queued_work(world: ChannelsWorld) -> None:
    world.channel(queue_mode="none")
    (fault,) = refused(world, json.dumps(line("a")))
    assert fault["code"] == "model_not_found"


def test_a_tenant_with_too_much_to_do_already(
    world: ChannelsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = world.app.registry.types["llm.plan"].handler.__self__  # type: ignore[attr-defined]
    monkeypatch.setattr(planner, "_max_open", 20)
    text = "".join(json.dumps(line(name)) + "\n" for name in names(30))
    (fault,) = refused(world, text)
    assert fault["code"] == "too_many_open"
    assert "try again" in fault["message"]
