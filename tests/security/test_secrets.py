"""Words that must not come out: sent wherever secrets are sent, and then looked for everywhere."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from headway.api.config import Config
from headway.api.jwts import MAX_TOKEN
from headway.api.serving import hide_secrets
from headway.net.redaction import SECRETS, redact
from tests.contract.kit import Api, listening, new_name, worker_of
from tests.hands.kit import eventually
from tests.postgres import shared_postgres
from tests.security.kit import Answer, Guarded, add_token, prepared, send
from tests.servers import STORES

CSI = "\x1b[31m"


@dataclass
class Canaries:
    """Secret words, by where they were sent; and what people and programs were told."""

    words: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def new(self, where: str) -> str:
        return self.words.setdefault(where, f"canary{uuid4().hex}")

    def heard(self, where: str, answer: Answer) -> None:
        self.told[f"{where}: {answer.status}"] = f"{answer.headers} {answer.body.decode()}"


@pytest.fixture(scope="module", params=STORES)
def cage(request: pytest.FixtureRequest) -> Iterator[tuple[Guarded, Canaries]]:
    """A server that logs all it can: as text, or as JSON and with the password of a database."""
    canaries = Canaries()
    settings = {"auth": "required", "log_level": "debug", "jwt_secret": canaries.new("jwt_secret"),
                "log_format": "json" if request.param == "postgres" else "text"}  # fmt: skip
    with prepared(request.param, **settings) as server:
        tokens = {"admin": add_token(server, "admin", ("admin",))}
        server.dsn = server.dsn.replace("postgres@", f"postgres:{canaries.new('dsn')}@")
        canaries.words["token"] = tokens["admin"].split("_", 2)[2]
        server.start()
        guarded = Guarded(server, tokens)
        send_everywhere(guarded, canaries)
        work(guarded, canaries)
        look_everywhere(guarded, canaries)
        server.stop()
        canaries.told["the log"] = server.printed()
        yield guarded, canaries


def send_everywhere(guarded: Guarded, canaries: Canaries) -> None:
    url, new = guarded.url, canaries.new
    said = {"authorization": f"Bearer {guarded.tokens['admin']}"}
    jwt = f"eyJhbGciOiJIUzI1NiJ9.eyJ{new('jwt')}.x{new('jwt mark')}"
    basic = base64.b64encode(f"user:{new('basic')}".encode()).decode()
    canaries.words["basic encoded"] = basic
    for where, headers in {
        "wrong token": {"authorization": f"Bearer hw_0123456789ab_{new('wrong token')}"},
        "a signed token": {"authorization": f"Bearer {jwt}"},
        "basic": {"authorization": f"Basic {basic}"},
        "no scheme": {"authorization": new("no scheme")},
        "cookie": {"cookie": f"headway=0123456789ab.9999999999.{new('cookie')}"},
        "another cookie": {**said, "cookie": f"session={new('another cookie')}"},
        "a long one": {"authorization": f"Bearer {'x' * MAX_TOKEN}.{new('long one')}.x"},
        "another header": {**said, "x-api-key": new("x-api-key")},
    }.items():
        canaries.heard(where, send(url, "GET", "/api/jobs", **headers))
    for name in ("token", "password", "api_key", "access_token", "sig", "key", "pass%77ord"):
        path = f"/api/jobs?{name}={new(f'query {name}')}&page=x"
        canaries.heard(path.partition("=")[0], send(url, "GET", path, **said))
        path = f"/nowhere?{name}={canaries.words[f'query {name}']}"
        canaries.heard(path.partition("=")[0], send(url, "GET", path))
    for path in ("/nowhere/{}", "/api/jobs/{}", "/static/{}", "/api/batches/{}"):
        at = path.format(f"hw_0123456789ab_{new('path')}")
        canaries.heard(path, send(url, "GET", at, **said))
    canaries.heard("login", send(url, "POST", "/login", f"token={new('login')}".encode()))
    cookie = send(url, "POST", "/login", f"token={guarded.tokens['admin']}".encode())
    canaries.words["session"] = cookie.headers["set-cookie"].partition(";")[0].rpartition(".")[2]
    session = cookie.headers["set-cookie"].partition(";")[0]
    canaries.heard("session", send(url, "GET", "/api/info", cookie=session))
    for where, body in {
        "bad json": f'{{"password": "{new("bad json")}"',
        "bad field": f'{{"type": 5, "api_key": "{new("bad field")}"}}',
        "bad value": f'{{"type": "x", "priority": "password={new("bad value")}"}}',
        "bad args": f'{{"type": "x", "args": {{"password": "{new("bad args")}", "n": 1e999}}}}',
    }.items():
        canaries.heard(where, send(url, "POST", "/api/jobs", body.encode(), **said))
        canaries.heard(where, send(url, "POST", "/api/schedules", body.encode(), **said))


def payload(canaries: Canaries) -> dict[str, Any]:
    new = canaries.new
    return {
        "password": new("payload password"),
        "api_key": new("payload api_key"),
        "inside": [{"client_secret": new("payload secret")}],
        "headers": {"Authorization": f"Bearer {new('payload bearer')}"},
        "address": f"https://someone:{new('payload address')}@example.org/",
    }


def work(guarded: Guarded, canaries: Canaries) -> None:
    """Jobs whose payloads and errors have secrets in them."""
    new = canaries.new
    with guarded.as_("admin") as api:
        type = new_name()
        ids = [api.enqueue(type, args=payload(canaries), max_attempts=1) for _ in range(3)]
        schedule = {"type": "never", "args": payload(canaries)}
        api.post("/api/schedules", {"name": type, "every": "9d", "job": schedule}, 201)
        lane = f"/api/lanes/{type}/close"
        api.post(lane, {"for_s": 5, "why": f"Authorization: Bearer {new('why')}"})
        with worker_of(api, type) as worker:
            error = (f"GET https://u:{new('error address')}@example.org/?api_key={new('error key')}"
                     f" with Authorization: Bearer {new('error bearer')} failed")  # fmt: skip
            first = worker.take_one()
            line = {"at": 1.0, "line": f"password={new('log line')}"}
            note = f"token: {new('note')}"
            worker.beat(first, logs=[line], progress={"done": 1, "note": note})
            worker.complete(first, status_code=418, error=error)
            said = {"kind": "failed", "fatal": True, "error": error}
            worker.complete(worker.take_one(), outcome=said)
            pushed = {"kind": "pushback", "error": error, "retry_after_s": 60}
            worker.complete(worker.take_one(), outcome=pushed)
        unique = {"key": f"password={new('unique')}", "on_conflict": "reject"}
        api.post("/api/jobs", {"type": type, "unique": unique}, 202)
        answer = api.http.post("/api/jobs", json={"type": type, "unique": unique})
        canaries.told["duplicate"] = answer.text
        assert answer.status_code == 409
        canaries.told["jobs"] = str([api.job(id) for id in ids])


def look_everywhere(guarded: Guarded, canaries: Canaries) -> None:
    with guarded.as_("admin") as api:
        for each in api.document.operations:
            if each.method != "GET" or each.path == "/api/schedules" or "{name}" in each.path:
                continue  # schedules show the payloads that they are made of
            if each.path.endswith("/payload") or each.path in (
                "/api/events",
                "/api/requests/events",
            ):
                continue
            for number in (1, 2, 3, 4):
                canaries.told[f"{each.name} {number}"] = api.http.get(each.at(id=number)).text
        for path in ("/api/trail", "/api/audit"):
            canaries.told[path] = api.http.get(path, params={"limit": 1000}).text
            assert api.get(path)["items"]
        for path in ("/api/events", "/api/requests/events"):
            last = api.get("/api/trail", limit=1000)["items"]
            last = [row["id"] for row in last if path == "/api/events" or row["after"]][-1]
            with listening(api, path, last=0) as stream:
                while (event := stream.event())["id"] < last:
                    canaries.told[f"{path} {event['id']}"] = str(event)
        for path in ("/metrics", "/openapi.json", "/docs", "/"):
            canaries.told[path] = api.http.get(path).text
    canaries.told["the export"] = exported(guarded)


def exported(guarded: Guarded) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headway", "export", "-", "--server", guarded.url,
         "--token", guarded.tokens["admin"]],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


def test_no_secret_comes_out_anywhere(cage: tuple[Guarded, Canaries]) -> None:
    _, canaries = cage
    found = [(word, place) for word, canary in canaries.words.items()
             for place, text in canaries.told.items() if canary in text]  # fmt: skip
    assert found == []


def test_there_was_something_to_find(cage: tuple[Guarded, Canaries]) -> None:
    _, canaries = cage
    assert len(canaries.words) > 30
    assert len(canaries.told) > 100
    log = canaries.told["the log"]
    for path in ("/api/jobs", "/nowhere", "/login", "/static/"):
        assert path in log
    assert "[redacted]" in log
    assert "[redacted]" in canaries.told["/api/trail"]
    assert "[redacted]" in canaries.told["the export"]
    assert "hw_0123456789ab_[redacted]" in log  # which one it was may be known
    assert "Traceback" not in log


def test_no_secret_is_stored_but_those_of_payloads(cage: tuple[Guarded, Canaries]) -> None:
    """A store must keep what a job is called with; nothing else."""
    guarded, canaries = cage
    stored = rows_of(guarded.server.dsn) if guarded.server.dsn else files_in(guarded.server.data)
    kept = {word for word, canary in canaries.words.items() if canary in stored}
    assert kept == {word for word in canaries.words if word.startswith("payload")} | {"unique"}


def files_in(directory: Path) -> str:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files).decode("latin-1")


def rows_of(dsn: str) -> str:
    schema = dsn.partition("schema=")[2]
    with psycopg.connect(shared_postgres().url()) as connection:
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = %s", [schema]
        ).fetchall()
        rows = [connection.execute(f'select t::text from "{schema}"."{table}" t').fetchall()  # type: ignore[arg-type]
                for (table,) in tables]  # fmt: skip
    assert rows
    return str(rows)


def test_every_line_of_the_log_is_one_record(cage: tuple[Guarded, Canaries]) -> None:
    _, canaries = cage
    lines = canaries.told["the log"].splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    assert records or any(" INFO " in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_what_the_server_is_told_is_known_as_secret() -> None:
    """Though no pattern would find it, whoever quotes it."""
    config = Config(dsn="postgresql://u:pa%40ssword-x@h/d", jwt_secret="nothing-that-looks-secret")
    hide_secrets(config)
    try:
        for quoted in ("pa%40ssword-x", "pa@ssword-x", "nothing-that-looks-secret"):
            assert redact(f"cannot use {quoted} here") == "cannot use [redacted] here"
        hide_secrets(Config(dsn="postgresql://[half"))  # is for others to complain about
    finally:
        for each in ("pa%40ssword-x", "pa@ssword-x", config.jwt_secret):
            SECRETS.discard(each)


# ---------------------------------------------------------------------- lines that are not ours


@pytest.mark.parametrize("format", ["text", "json"])
def test_nobody_writes_lines_of_their_own_into_the_log(format: str) -> None:
    with prepared("sqlite", log_format=format, log_level="debug") as server:
        server.start()
        forged = "2030-01-01 00:00:00.000 INFO headway: forged"
        for break_ in ("%0a", "%0d%0a", "%0d", "%e2%80%a8", "%c2%85", "%0b", "%1b%5b2K", "%00"):
            line = f"x{break_}{forged.replace(' ', '%20')}"
            send(server.url, "GET", f"/nowhere/{line}")
            send(server.url, "GET", f"/api/jobs?q={line}")
            send(server.url, "GET", "/api/jobs", authorization=f"Bearer {line}")
        for name in (f"x\n{forged}", f"{CSI}\r{forged}", f"\u2028{forged}"):
            with Api(server.url) as api:
                id = api.enqueue(name)
                api.post(f"/api/jobs/{id}/cancel")
        eventually(lambda: server.printed().count("/nowhere/") >= 8)
        server.stop()
        said = server.printed()
    assert "forged" in said  # it is there, but within a line
    for line in said.splitlines():
        assert not line.startswith("2030-01-01")
        assert line.isprintable() or format == "json"
        assert "\x1b" not in line
    if format == "json":
        lines = [line for line in said.split("\n") if line and not line.startswith("Headway is at")]
        assert all(isinstance(json.loads(line), dict) for line in lines)
