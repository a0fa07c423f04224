"""What `export` writes, `import` brings in: by a server and without one."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from headway.store import open_store
from headway.store.records import NewJob
from tests.cli.kit import Cli

CANARY = "canary-7f3a9c"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def of_kind(file: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in lines(file) if line["kind"] == kind]


@pytest.fixture
def other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """Another store, to import into."""
    data = tmp_path / "other"
    data.mkdir()
    url = f"sqlite:///{data / 'headway.db'}"
    open_store(url).close()
    return Cli(capsys, ("--data", str(data)), store_url=url)


def fill(cli: Cli) -> None:
    cli.add("first", "n=1", "--lane", "web", "--upstream", "a.example", "--label", "team=a")
    cli.add("second", "n=2", "--priority", "1", "--tenant", "ann", "--key", "k")
    aside = cli.add("third", "n=3")
    gone = cli.add("fourth", "n=4")
    cli("jobs", "pause", str(aside))
    cli("jobs", "cancel", str(gone))
    cli("schedules", "add", "nightly", "report", "day=1", "--cron", "0 3 * * *", "--lane", "web")
    cli("schedules", "add", "hourly", "report", "--every", "1h")
    cli("schedules", "pause", "hourly")
    cli("lanes", "set", "web", "limit=4")
    cli("upstreams", "set", "a.example", "every=2s", "limit=1")


def test_everything_comes_back(direct: Cli, other: Cli, tmp_path: Path) -> None:
    fill(direct)
    file = tmp_path / "all.jsonl"
    said = direct("export", str(file))
    # The occurrences of both schedules are jobs too.
    assert said.out == f"exported 6 jobs, 2 schedules, 2 settings to {file}\n"
    assert [line["job"]["type"] for line in of_kind(file, "job")][:4] == [
        "first", "second", "third", "fourth",
    ]  # fmt: skip

    done = other.json("import", str(file))
    assert (done["settings"], done["schedules"]) == (2, 2)
    assert [each["was"] for each in done["jobs"]] == [1, 2, 3]
    jobs = {job["type"]: job for job in other.json("jobs", "ls", "status:open")["items"]}
    first, second, third = (jobs[type] for type in ("first", "second", "third"))
    assert (first["lane"], first["upstreams"], first["labels"]) == (
        "web", ["a.example"], {"team": "a"},
    )  # fmt: skip
    assert (second["priority"], second["tenant"], second["key"]) == (1, "ann", "k")
    assert third["status"] == "paused"
    assert "fourth" not in jobs
    assert other.json("jobs", "show", str(first["id"]))["args"] == {"n": 1}
    schedules = {each["name"]: each for each in other.json("schedules", "ls")["items"]}
    assert schedules["nightly"]["rule"] == {"cron": "0 3 * * *", "zone": "UTC"}
    assert (schedules["nightly"]["args"], schedules["nightly"]["lane"]) == ({"day": 1}, "web")
    assert schedules["hourly"]["paused"] is True
    assert other.json("lanes", "show", "web")["limit"] == 4
    assert other.json("upstreams", "show", "a.example")["settings"]["overridden"] is True


def test_settings_and_schedules_may_come_again(direct: Cli, tmp_path: Path) -> None:
    fill(direct)
    file = tmp_path / "all.jsonl"
    direct("export", str(file), "--match", "type:nothing")
    before = kept(direct)
    direct("import", str(file))

    assert of_kind(file, "job") == []
    assert kept(direct) == before


def kept(cli: Cli) -> list[Any]:
    """What must not change when it comes again. (A paused schedule has no next time.)"""
    schedules = cli.json("schedules", "ls")["items"]
    return [
        cli.json("lanes", "show", "web")["settings"],
        cli.json("upstreams", "show", "a.example")["settings"],
        [each["next_due_at"] for each in schedules if not each["paused"]],
        [(each["name"], each["rule"], each["args"], each["paused"]) for each in schedules],
        cli.json("jobs", "ls", "status:open")["total"],
    ]


def test_people_are_told_which_job_is_which(cli: Cli, other: Cli, tmp_path: Path) -> None:
    id = cli.add("waits-here", "--delay", "1h")
    file = tmp_path / "one.jsonl"
    cli("export", str(file), "--match", "type:waits-here")
    said = other("import", str(file))

    assert f"job {id} is now job 1" in said.out
    [job] = of_kind(file, "job")
    assert other.json("jobs", "show", "1")["next_attempt_at"] == job["job"]["at"]


def test_a_dry_run_changes_nothing(direct: Cli, other: Cli, tmp_path: Path) -> None:
    fill(direct)
    direct("export", str(tmp_path / "all.jsonl"))
    said = other("import", str(tmp_path / "all.jsonl"), "--dry-run")

    assert "would bring in 2 settings, 2 schedules, 3 jobs" in said.out
    assert other.json("jobs", "ls")["total"] == 0
    assert other.json("schedules", "ls")["items"] == []


def test_more_jobs_than_a_page_in_their_order(direct: Cli, tmp_path: Path) -> None:
    store = open_store(direct.store_url)
    made = store.insert([NewJob("many", f'{{"n": {n}}}', created_at=1.0 + n) for n in range(450)])
    store.close()
    direct("export", str(tmp_path / "x.jsonl"))
    jobs = of_kind(tmp_path / "x.jsonl", "job")

    assert [job["id"] for job in jobs] == [each.id for each in made]
    assert [job["job"]["args"]["n"] for job in jobs] == list(range(450))


def test_a_pipe_from_one_to_the_other(
    direct: Cli, other: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct.add("piped")
    said = direct("export", "-")
    assert "exported 1 job" in said.err
    monkeypatch.setattr("sys.stdin", io.StringIO(said.out))

    assert other.json("import", "-")["jobs"] == [{"was": 1, "is": 1}]


# ---------------------------------------------------------------------- secrets


def test_no_secret_and_no_token_is_in_an_export(direct: Cli, other: Cli, tmp_path: Path) -> None:
    token = direct("tokens", "create", "ann", "--scope", "admin", "--quiet").out.strip()
    direct.add("login", "user=ann", f"password={CANARY}")
    direct.add("plain", "user=ann")
    direct(
        "schedules", "add", "s", "login", "--every", "1h", "--args",
        json.dumps({"headers": {"Authorization": f"Bearer {CANARY}"}}),
    )  # fmt: skip
    file = tmp_path / "x.jsonl"
    direct("export", str(file))

    text = file.read_text("utf-8")
    assert CANARY not in text
    assert token not in text
    assert token.split("_")[1] not in text
    said = other("import", str(file))
    assert "left out: job 1: its secrets were not exported" in said.err
    assert "left out: schedule s: its secrets were not exported" in said.err
    assert [job["type"] for job in other.json("jobs", "ls")["items"]] == ["plain"]


def test_secrets_are_exported_only_when_asked_for(direct: Cli, other: Cli, tmp_path: Path) -> None:
    direct.add("login", f"password={CANARY}")
    direct("export", str(tmp_path / "x.jsonl"), "--with-secrets")
    other("import", str(tmp_path / "x.jsonl"))

    assert other.json("jobs", "show", "1")["args"] == {"password": CANARY}


def test_nobody_else_may_read_the_file(direct: Cli, tmp_path: Path) -> None:
    direct("export", str(tmp_path / "x.jsonl"))

    assert stat.S_IMODE((tmp_path / "x.jsonl").stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.part"))


# ---------------------------------------------------------------------- what cannot be read

GOOD = json.dumps(
    {"kind": "job", "id": 7, "status": "queued", "schedule": None, "job": {"type": "t"}}
)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("{", "it is no JSON object"),
        ("[]", "it is no JSON object"),
        ('{"kind": "token"}', "it has the kind 'token', which no export has"),
        ("{}", "it has the kind None, which no export has"),
        ('{"kind": "headway-export", "format": 99}', "it has format 99"),
        ('{"kind": "job"}', "'id' is missing"),
        (GOOD.replace('{"type": "t"}', '{"type": ""}'), "type"),
        (GOOD.replace('{"type": "t"}', '"t"'), "is not as an export writes it"),
        ('{"kind": "setting", "of": "colours", "name": "x", "value": {}}', "'colours'"),
        ('{"kind": "setting", "of": "lanes", "name": "x", "value": {"a": 1}}', "cannot be set"),
        ('{"kind": "schedule", "name": "s", "rule": {}, "source": "operator"}', "is missing"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(
    other: Cli, tmp_path: Path, broken: str, why: str
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(f"{GOOD}\n\n{broken}\n{GOOD}\n", "utf-8")
    refused = other.refuses("import", str(file))

    assert refused.startswith(f"line 3 of {file}: ")
    assert why in refused
    assert "done before it: 0 settings, 0 schedules, 1 job (0 had ended" in refused
    assert other.json("jobs", "ls")["total"] == 1


def test_bytes_that_are_no_text(other: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(GOOD.encode() + b"\n\xff\xfe\n")

    assert "it is no JSON object" in other.refuses("import", str(tmp_path / "x.jsonl"))


def test_files_that_cannot_be_used(direct: Cli, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in direct.refuses("import", str(tmp_path / "nowhere"))
    nowhere = str(tmp_path / "nowhere" / "x.jsonl")
    assert "cannot be written: No such file" in direct.refuses("export", nowhere)


def test_what_is_over_or_comes_by_itself_is_left_out(other: Cli, tmp_path: Path) -> None:
    line = json.loads(GOOD)
    late = {**line, "job": {"type": "t", "deadline": "2020-01-01T00:00:00.000000Z"}}
    planned = {**line, "id": 8, "schedule": "nightly"}
    ended = {**line, "id": 9, "status": "completed"}
    coded = {"kind": "schedule", "name": "s", "rule": {"every_s": 60.0}, "source": "code"}
    text = "".join(json.dumps(each) + "\n" for each in (late, planned, ended, coded))
    (tmp_path / "x.jsonl").write_text(text, "utf-8")
    done = other.json("import", str(tmp_path / "x.jsonl"))

    assert done["jobs"] == []
    assert done["ended"] == 1
    assert done["left_out"] == [
        "job 7: its deadline is over",
        "job 8: the schedule nightly makes its own",
        "schedule s: it comes with the app that declares it",
    ]
