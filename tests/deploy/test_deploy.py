"""The files in `deploy` say nothing that the program does not know: commands, options, variables,
paths and ports.
"""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from headway.api.config import Config
from headway.api.routes import system
from headway.apps.alerts.settings import AlertSettings
from headway.cli.root import app
from headway.net.sealing import VARIABLE

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
UNITS = ("headway.service", "headway-backup.service", "headway-backup.timer")
KNOWN = (
    {f"HEADWAY_{each.name.upper()}" for each in fields(Config)}
    | {f"HEADWAY_ALERTS_{each.name.upper()}" for each in fields(AlertSettings)}
    | {VARIABLE}
)
NAMED = re.compile(r"HEADWAY_[A-Z_]+")


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text("utf-8")


def unit(name: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text_of(name))
    return {section: dict(parser[section]) for section in parser.sections()}


def check_command(words: list[str]) -> None:
    """The program has this command, with these options."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    assert not hasattr(command, "commands"), f"no command in {words}"
    options = {option for each in command.params for option in each.opts}
    for word in words:
        if word.startswith("--"):
            assert word.partition("=")[0] in options, word


@pytest.mark.parametrize("name", sorted(each.name for each in DEPLOY.iterdir() if each.is_file()))
def test_every_variable_is_one_that_the_program_reads(name: str) -> None:
    assert set(NAMED.findall(text_of(name))) <= KNOWN


@pytest.mark.parametrize("name", [each for each in UNITS if each.endswith(".service")])
def test_units_call_commands_that_are_there(name: str) -> None:
    program, *words = shlex.split(unit(name)["Service"]["ExecStart"])
    assert program.endswith("/headway")
    check_command(words)


def test_the_service_is_stopped_after_its_jobs_have_drained() -> None:
    service = unit("headway.service")["Service"]
    assert float(service["TimeoutStopSec"]) > Config().drain_s + 10
    assert (service["KillSignal"], service["Restart"]) == ("SIGTERM", "on-failure")
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert "HEADWAY_DATA=%S/headway" in service["Environment"]
    assert service["StateDirectory"] == "headway"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    for name in UNITS:  # with a program that is there
        text = text_of(name).replace("/opt/headway/bin/headway", sys.executable)
        (tmp_path / name).write_text(text)
    said = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    complaints = [line for line in said.stderr.splitlines() if "headway" in line]
    assert (said.returncode, complaints) == (0, [])


def instructions() -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", text_of("Containerfile")).splitlines()
    words = [line.strip().split(None, 1) for line in lines if line.strip()]
    return [(each[0], each[1]) for each in words if not each[0].startswith("#")]


def test_the_image_runs_as_nobody_special_and_has_what_it_copies() -> None:
    found = instructions()
    assert ("USER", "headway") in found
    for verb, rest in found:
        if verb == "COPY" and "--from" not in rest:
            for each in rest.split()[:-1]:
                assert (DEPLOY.parent / each).exists(), each
    entry = dict(found)
    check_command([*yaml.safe_load(entry["ENTRYPOINT"])[1:], *yaml.safe_load(entry["CMD"])])


def test_the_image_listens_and_is_asked_where_the_server_is() -> None:
    entry = dict(instructions())
    assert int(entry["EXPOSE"]) == Config().port
    assert f"HEADWAY_PORT={Config().port}" in entry["ENV"]
    paths = {getattr(each, "path", "") for each in system.router.routes}
    asked = re.search(r"'(/\w+)', timeout", entry["HEALTHCHECK"])
    assert asked is not None
    assert asked[1] in paths
    assert f"HEADWAY_DATA={entry['VOLUME']}" in entry["ENV"]
    # What is asked is what Python runs: the quotes are right.
    code = yaml.safe_load(entry["HEALTHCHECK"].partition("CMD ")[2])
    compile(code[2], "healthcheck", "exec")


def test_the_image_is_made_of_the_lock_that_everybody_runs() -> None:
    [making] = [rest for verb, rest in instructions() if verb == "RUN" and "pip install" in rest]
    assert "--require-hashes -r requirements.lock" in making


def test_servers_of_the_group_share_a_database_and_their_keys() -> None:
    compose = yaml.safe_load(text_of("compose.yaml"))
    servers = [compose["services"][name] for name in ("one", "two")]
    for name, each in zip(("one", "two"), servers, strict=True):
        environment = each["environment"]
        assert environment["HEADWAY_DSN"] == servers[0]["environment"]["HEADWAY_DSN"]
        assert environment["HEADWAY_ADVERTISE"] == f"http://{name}:{Config().port}"
        assert name in environment["HEADWAY_ALLOWED_HOSTS"].split(",")
        assert each["ports"][0].endswith(f":{Config().port}")
        assert float(each["stop_grace_period"].removesuffix("s")) > Config().drain_s + 10
        assert (DEPLOY / each["build"]["context"] / each["build"]["dockerfile"]).is_file()
        assert each["volumes"][0].partition(":")[2] == dict(instructions())["VOLUME"]
        Config(advertise=environment["HEADWAY_ADVERTISE"]).check()
