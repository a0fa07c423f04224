"""`headway jobs`, by a server and without one."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from headway.store import open_store
from headway.store.records import NewJob
from tests.cli.kit import Cli


def new_type() -> str:
    """A type that nobody knows, so that its jobs wait; other tests have their own."""
    return f"t{uuid4().hex[:12]}"


def test_a_job_is_added_and_listed(cli: Cli) -> None:
    type = new_type()
    said = cli("jobs", "add", type, "url=https://example.com", "depth=2", "--lane", "web")

    assert said.code == 0
    assert "is queued" in said.out
    [job] = cli.json("jobs", "ls", f"type:{type}")["items"]
    assert (job["type"], job["lane"], job["status"]) == (type, "web", "queued")
    shown = cli.json("jobs", "show", str(job["id"]))
    assert shown["args"] == {"url": "https://example.com", "depth": 2}


def test_everything_a_job_can_be_asked_for_with(cli: Cli) -> None:
    type = new_type()
    first = cli.add(type, "--args", '{"a": [1, 2]}', "--delay", "1h")
    job = cli.json(
        "jobs", "add", type, "a=x", "--tenant", "ann", "--key", "k", "--upstream", "a.example",
        "--upstream", "b.example", "--priority", "2", "--label", "team=a", "--deadline", "2d",
        "--after", str(first), "--max-attempts", "7", "--tool", "ffmpeg", "--unique", type,
    )  # fmt: skip

    assert job["tenant"] == "ann"
    assert job["key"] == "k"
    assert job["upstreams"] == ["a.example", "b.example"]
    assert job["priority"] == 2
    assert job["labels"] == {"team": "a"}
    assert job["deadline"] is not None
    assert job["max_attempts"] == 7
    assert job["joined"] is False
    again = cli("jobs", "add", type, "--unique", type)
    assert again.out.startswith(f"job {job['id']} is there already")


def test_qualifiers_narrow_the_list(cli: Cli) -> None:
    type = new_type()
    kept = cli.add(type, "--label", "team=two words")
    gone = cli.add(type)
    cli("jobs", "cancel", str(gone))

    def found(*search: str) -> list[int]:
        return [job["id"] for job in cli.json("jobs", "ls", f"type:{type}", *search)["items"]]

    assert found() == [gone, kept]
    assert found("status:open") == [kept]
    assert found("status:cancelled") == [gone]
    assert found("label:team=two words") == [kept]
    assert found("-n", "1") == [gone]
    assert found("-n", "1", "--page", "2") == [kept]
    assert "and 1 more" in cli("jobs", "ls", f"type:{type}", "-n", "1").out


def test_a_list_longer_than_a_page(direct: Cli) -> None:
    store = open_store(direct.store_url)
    ids = [made.id for made in store.insert([NewJob("many", "{}", created_at=1.0)] * 260)]
    store.close()
    answer = direct.json("jobs", "ls", "--limit", "250")

    assert [job["id"] for job in answer["items"]] == sorted(ids, reverse=True)[:250]
    assert (answer["count"], answer["total"]) == (250, 260)


def test_the_table_says_why_jobs_wait(cli: Cli) -> None:
    type = new_type()
    cli.add(type, "--delay", "10m")
    cli.add(type)
    out = cli("jobs", "ls", f"type:{type}").out

    assert "not due yet, in 10 min" in out
    assert "no worker knows this type" in out
    assert "ago" in out or "now" in out


def test_an_unknown_qualifier_is_refused(cli: Cli) -> None:
    assert "foo: is no qualifier" in cli.refuses("jobs", "ls", "foo:1")


def test_a_job_that_is_not_there(cli: Cli) -> None:
    for verb in ("show", "explain", "logs", "wait"):
        assert "there is no job 999999999" in cli.refuses("jobs", verb, "999999999")


def test_a_job_is_explained(cli: Cli) -> None:
    id = str(cli.add(new_type(), "--delay", "1h"))

    assert cli.json("jobs", "explain", id)["reason"] == "not_due"
    said = cli("jobs", "explain", id).out
    assert "not due yet" in said
    assert "in 60 min" in said


def test_a_job_is_paused_resumed_pinned_prioritised_cancelled_and_retried(cli: Cli) -> None:
    id = str(cli.add(new_type()))

    assert cli("jobs", "pause", id).out == f"job {id} is paused\n"
    assert cli("jobs", "resume", id).code == 0
    assert cli.json("jobs", "pin", id)["pinned"] is True
    assert cli.json("jobs", "unpin", id)["pinned"] is False
    assert cli.json("jobs", "prioritize", "1", id)["priority"] == 1
    assert cli("jobs", "cancel", id).out == f"job {id} is cancelled\n"
    assert cli.json("jobs", "retry", id)["status"] in ("pending", "queued")


def test_of_several_jobs_each_is_tried(cli: Cli) -> None:
    type = new_type()
    first, last = cli.add(type), cli.add(type)
    said = cli("jobs", "cancel", str(first), "999999999", str(last))

    assert said.code == 1
    assert said.out == f"job {first} is cancelled\njob {last} is cancelled\n"
    assert said.err.startswith("job 999999999: there is no job")
    again = cli("jobs", "cancel", str(first), "--json")
    assert again.code == 1
    assert '"error"' in again.out


def test_what_matches_is_only_touched_after_yes(cli: Cli) -> None:
    type = new_type()
    ids = {cli.add(type) for _ in range(3)}
    looked = cli("jobs", "cancel", "--match", f"type:{type}", "--dry-run")

    assert "3 jobs found, 3 of them fit to cancel" in looked.out
    assert all(str(id) in looked.out for id in ids)
    refused = cli.refuses("jobs", "cancel", "--match", f"type:{type}")
    assert "this would cancel 3 jobs" in refused
    assert cli.json("jobs", "ls", f"type:{type}", "status:open")["total"] == 3
    done = cli.json("jobs", "cancel", "--match", f"type:{type}", "--yes")
    assert (done["done"], done["refused"], done["dry_run"]) == (3, 0, False)
    assert cli.json("jobs", "ls", f"type:{type}", "status:open")["total"] == 0
    assert "0 of them fit" in cli("jobs", "cancel", "--match", f"type:{type}").out


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("y\n", 0)])
def test_whoever_is_asked_may_say_no(
    direct: Cli, answer: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct.add("one")
    monkeypatch.setattr("sys.stdin", Keyboard(answer))
    said = direct("jobs", "cancel", "--match", "type:one")

    assert "cancel 1 job?" in said.err
    assert said.code == left
    assert direct.json("jobs", "ls", "status:open")["total"] == left


class Keyboard:
    """Somebody who types, at a terminal."""

    def __init__(self, text: str) -> None:
        self._text = text

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        text, self._text = self._text, ""
        return text


@pytest.mark.parametrize(
    "arguments",
    [
        ("cancel",),
        ("cancel", "1", "--match", "type:x"),
        ("cancel", "1", "--dry-run"),
        ("show", "x"),
        ("add", "t", "name"),
        ("add", "t", "a=1", "--args", "{}"),
        ("add", "t", "--args", "[1]"),
        ("add", "t", "--args", "{"),
        ("add", "t", "--args", "@nowhere.json"),
        ("add", "t", "--delay", "10"),
        ("add", "t", "--at", "tomorrow"),
        ("ls", "--limit", "0"),
        ("ls", "--limit", "201", "--page", "2"),
    ],
)
def test_a_usage_error_is_2_and_changes_nothing(bare: Cli, arguments: tuple[str, ...]) -> None:
    said = bare("jobs", *arguments)

    assert said.code == 2
    assert said.out == ""


def test_a_job_runs_and_is_waited_for(served: Cli) -> None:
    id = served.add("greet", "name=Ann", "--keep-result", "1h")
    done = served.json("jobs", "wait", str(id))

    assert (done["status"], done["result"]) == ("completed", "hello Ann")
    said = served("jobs", "wait", str(id))
    assert "hello Ann" in said.out
    assert "greeting Ann" in served("jobs", "logs", str(id)).out
    shown = served("jobs", "show", str(id), "--events").out
    assert "grant" in shown
    assert served.json("jobs", "show", str(id), "--events")["events"]


def test_waiting_for_a_job_that_fails_fails(served: Cli) -> None:
    id = served.add("fail", "why=a cable is broken")
    said = served("jobs", "wait", str(id))

    assert said.code == 1
    assert "a cable is broken" in said.out
    assert "a cable is broken" in served("jobs", "show", str(id)).out
    refused = served.refuses("jobs", "explain", str(id))
    assert "has ended: it is failed" in refused


def test_waiting_has_an_end(served: Cli, tmp_path: Path) -> None:
    id = served.add("hold", f"file={tmp_path / 'go'}")
    refused = served.refuses("jobs", "wait", str(id), "--timeout", "0.2s")

    assert refused.startswith(f"job {id} has not ended in time")
    (tmp_path / "go").touch()
    assert served("jobs", "wait", str(id), "--timeout", "30s").code == 0


def test_nobody_waits_where_nothing_runs(direct: Cli) -> None:
    id = direct.add("greet", "name=Ann")

    assert "no server is running" in direct.refuses("jobs", "wait", str(id))


def test_a_job_that_runs_is_really_stopped(served: Cli, tmp_path: Path) -> None:
    id = str(served.add("hold", f"file={tmp_path / 'never'}"))
    runs = served.json("jobs", "ls", f"id:{id}", "status:running")
    while not runs["items"]:
        runs = served.json("jobs", "ls", f"id:{id}", "status:running")
    assert "asked to cancel" in served("jobs", "cancel", id).out
    assert served("jobs", "wait", id).code == 1
    assert served.json("jobs", "show", id)["status"] == "cancelled"


def test_text_from_elsewhere_does_nothing_to_a_terminal(cli: Cli) -> None:
    type = new_type()
    cli.add(type, "--tenant", "\x1b[31mred[bold]\x07")
    out = cli("jobs", "ls", f"type:{type}").out

    assert "\x1b" not in out
    assert "\x07" not in out
    assert "red[bold]" in out
