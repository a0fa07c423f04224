"""Schedules, batches, tokens, events and the audit trail, by a server and without one."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from uuid import uuid4

import pytest

from headway import App
from tests.cli.kit import Cli


def new_name() -> str:
    return f"n{uuid4().hex[:12]}"


def test_a_schedule_is_made_paused_resumed_and_removed(cli: Cli) -> None:
    name = new_name()
    made = cli.json("schedules", "add", name, "greet", "name=Ann", "--every", "1h30m")

    assert made["args"] == {"name": "Ann"}
    assert name in cli("schedules", "ls").out
    assert "every 1h30m" in cli("schedules", "show", name).out
    assert cli.json("schedules", "pause", name)["paused"] is True
    assert "paused" in cli("schedules", "ls").out
    assert cli.json("schedules", "resume", name)["paused"] is False
    assert cli("schedules", "rm", name).out == f"schedule {name} is removed\n"
    assert f"there is no schedule '{name}'" in cli.refuses("schedules", "rm", name)


def test_what_needs_attention_in_words(cli: Cli) -> None:
    name = new_name()
    cli.json("schedules", "add", name, "greet", "name=Ann", "--every", "1h")
    cli.json("schedules", "pause", name)
    cli("upstreams", "close", f"{name}.example", "--for", "15m", "--why", "they move house")

    assert cli("attention").code == 0
    found = {each["subject"]["name"]: each for each in cli.json("attention")["items"]}
    assert found[name]["kind"] == "schedule_paused"
    assert "they move house" in found[f"{name}.example"]["text"]


def test_the_servers_of_a_store(cli: Cli) -> None:
    items = cli.json("servers")["items"]
    shown = cli("servers").out
    if items:
        assert [each["role"] for each in items] == ["leads"]
        assert items[0]["url"] in shown
    else:
        assert shown == "No server runs.\n"


def test_a_schedule_by_the_calendar(cli: Cli) -> None:
    name = new_name()
    made = cli.json(
        "schedules", "add", name, "greet", "--args", '{"name": "Ann"}', "--cron", "0 3 * * *",
        "--zone", "Europe/Berlin", "--lane", "nightly",
    )  # fmt: skip

    assert made["rule"] == {"cron": "0 3 * * *", "zone": "Europe/Berlin"}
    assert made["lane"] == "nightly"
    assert "0 3 * * * (Europe/Berlin)" in cli("schedules", "ls").out
    cli("schedules", "rm", name)


def test_a_rule_that_makes_no_sense_is_refused(cli: Cli) -> None:
    assert cli.refuses("schedules", "add", new_name(), "greet", "--cron", "every day")
    assert cli.refuses("schedules", "add", new_name(), "greet", "--every", "soon")


@pytest.mark.parametrize(
    "options", [(), ("--every", "1h", "--cron", "0 3 * * *"), ("--every", "1h", "--zone", "UTC")]
)
def test_a_schedule_has_one_rule(bare: Cli, options: tuple[str, ...]) -> None:
    assert bare("schedules", "add", "s", "greet", *options).code == 2


def test_batches_are_counted(direct: Cli) -> None:
    assert direct("batches", "ls").out == "no batches\n"
    app = App(direct.store_url)
    batch = app.batch("nightly")
    app.close()
    direct.add("t", "--batch", str(batch.id))

    [found] = direct.json("batches", "ls")["items"]
    assert (found["label"], found["counts"]) == ("nightly", {"queued": 1})
    assert "1 queued" in direct("batches", "show", str(batch.id)).out
    assert "there is no batch 99" in direct.refuses("batches", "show", "99")


# ---------------------------------------------------------------------- tokens


def test_a_token_is_made_listed_and_revoked(cli: Cli) -> None:
    name = new_name()
    said = cli("tokens", "create", name, "--scope", "read", "--scope", "submit", "--quiet")

    assert said.err == ""
    [token] = said.out.splitlines()
    assert token.startswith("hw_")
    [row] = [each for each in cli.json("tokens", "ls")["items"] if each["name"] == name]
    assert row["scopes"] == ["read", "submit"]
    assert token not in cli("tokens", "ls").out
    assert cli("tokens", "revoke", row["id"]).code == 0
    assert "revoked" in cli("tokens", "ls").out
    assert "revoked already" in cli.refuses("tokens", "revoke", row["id"])


def test_a_token_alone_is_what_scripts_read(cli: Cli) -> None:
    said = cli("tokens", "create", new_name(), "--scope", "admin")

    assert said.out.startswith("hw_")
    assert said.out.count("\n") == 1
    assert "shown this once" in said.err
    made = cli.json(
        "tokens", "create", new_name(), "--scope", "read", "--tenant", "ann", "--expires", "30d"
    )
    assert made["tenant"] == "ann"
    assert made["expires_at"] is not None


def test_a_wrong_scope_is_refused(cli: Cli) -> None:
    assert "scopes" in cli.refuses("tokens", "create", new_name(), "--scope", "root")
    assert cli("tokens", "create", new_name()).code == 2


def test_the_first_token_makes_the_data_directory(bare: Cli, tmp_path: Path) -> None:
    data = tmp_path / "deep" / "new"
    said = bare("tokens", "create", "ann", "--scope", "admin", "-q", "--data", str(data))

    assert said.out.startswith("hw_")
    assert (data / "headway.db").is_file()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


# ---------------------------------------------------------------------- what happened


def test_events_are_the_last_ones_in_order(cli: Cli) -> None:
    id = cli.add(new_name())
    cli("jobs", "cancel", str(id))
    answer = cli.json("events", "--limit", "3")

    numbers = [event["id"] for event in answer["items"]]
    assert numbers == sorted(numbers)
    assert len(numbers) == 3
    assert f"job {id}" in cli("events").out
    later = cli.json("events", "--after", str(numbers[0]))["items"]
    assert later[0]["id"] == numbers[0] + 1


def test_the_audit_trail_says_who(cli: Cli) -> None:
    id = cli.add(new_name())
    cli("jobs", "pause", str(id))
    newest = cli.json("audit", "--limit", "1")["items"][0]

    assert newest["job"] == id
    assert newest["who"].startswith("loopback from")
    assert f"job {id}" in cli("audit").out
    if not cli.served:
        assert "command line of" in newest["who"]


def test_json_is_all_there_is_on_stdout(cli: Cli) -> None:
    for command in (
        ("jobs", "ls"), ("lanes", "ls"), ("upstreams", "ls"), ("tools", "ls"), ("types", "ls"),
        ("schedules", "ls"), ("batches", "ls"), ("tokens", "ls"), ("events",), ("audit",), ("top",),
    ):  # fmt: skip
        said = cli(*command, "--json")
        assert said.err == ""
        assert isinstance(json.loads(said.out), dict)
