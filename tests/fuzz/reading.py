"""How each kind of outside data is read, and what must hold for whatever comes of it."""

from __future__ import annotations

import json
import math
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec
from pydantic import TypeAdapter

from headway.api import search, tokens
from headway.api.auth import token_in
from headway.api.bodies import JobBody, new_job
from headway.api.config import Config
from headway.api.config import read as read_config
from headway.api.fairqueue import config as fairqueue
from headway.api.fairqueue.bodies import AcquireBody, ReleaseBody, hit_at, host_of
from headway.api.guard import cookie_of, host_name, too_deep
from headway.api.jwts import Keys
from headway.api.routes.events import LastEventId
from headway.api.together.peers import Peers
from headway.apps.alerts.settings import SETTINGS as ALERTS
from headway.apps.channels.batches.multipart import Form
from headway.apps.channels.batches.planning import read_line
from headway.apps.channels.calling import outcome_of_answer, said_in
from headway.apps.channels.declared import declared_channels
from headway.apps.channels.money import costs
from headway.apps.channels.online.streaming import Count, Events
from headway.apps.feeds.settings import SETTINGS as FEEDS
from headway.apps.media.settings import media_settings
from headway.cli.importing import Done, _bring, _decoded
from headway.cli.times import duration_text
from headway.core.classify import parse_retry_after
from headway.core.rate_headers import parse_rate_headers
from headway.core.recurrence import duration_s
from headway.cron import Cron
from headway.engine.hands.notes import Notes
from headway.engine.rules import rule_of
from headway.engine.settings import Settings, policy_of
from headway.errors import BadSettings
from headway.net.outbound import Allowed, check_url
from headway.net.redaction import redact, redact_query
from headway.net.sealing import Vault, new_key
from headway.net.urls import host_of as domain_of
from headway.net.urls import plain_url
from headway.store.filtering import where
from headway.store.postgres.reading import Reader as PostgresReader
from headway.store.records import Query
from headway.store.sqlite.reading import Reader as SqliteReader
from tests.fuzz.target import headers_of

NOW = 1_800_000_000.0
DEPTH = 50
TABLES = (FEEDS, ALERTS)  # `alert_settings` would have secrets hidden in all other targets, too

# ---------------------------------------------------------------------- what upstreams say


def rate_headers(data: bytes) -> None:
    found = parse_rate_headers(headers_of(data), NOW)
    for quota in (found.requests, found.tokens) if found else ():
        if quota is not None:
            assert 0 < quota.limit < math.inf
            assert 0 <= quota.remaining <= quota.limit
            assert 0 <= quota.reset_s < math.inf
            assert 0 < quota.window_s < math.inf


def retry_after(text: str) -> None:
    wait_s = parse_retry_after(text, NOW)
    assert wait_s is None or 0 <= wait_s <= 8 * 86_400


def answer_of_provider(data: bytes) -> None:
    head, _, body = data.partition(b"\n\n")
    status = 100 + sum(head[:2]) % 500
    outcome_of_answer(status, headers_of(head), body, NOW)
    assert len(said_in(body)) < 5_000


def stream_of_provider(data: bytes) -> None:
    """However it is cut into pieces, it is the same stream."""
    cut = data[0] % 16 + 1 if data else 1
    events, count = Events(), Count(10, wanted=False)
    passed = [e for at in range(0, len(data), cut) for e in events.feed(data[at : at + cut])]
    assert b"".join(passed) + events.rest() == data
    assert passed == list(Events().feed(data)), "the cuts matter"
    for event in passed:
        count.keeps(event)
    usage = count.usage()
    assert 0 <= usage.input_tokens < 2**63
    assert 0 <= usage.output_tokens < 2**63


# ---------------------------------------------------------------------- what people write


def duration(text: str) -> None:
    seconds = duration_s(text)
    assert abs(duration_s(duration_text(seconds)) - seconds) <= 1e-3 + seconds * 1e-5


def cron(text: str) -> None:
    expression, _, zone = text.partition("|")
    rule = Cron(expression, zone=zone or "UTC")
    assert rule.after(NOW, NOW) > NOW


def job_search(text: str) -> None:
    query = search.parse(text, Query(tenant="own"), NOW)
    for reader in (SqliteReader, PostgresReader):
        condition = where(query, reader.WORDS)
        if condition is not None:
            words, values = condition
            assert words.count("?") == len(values), "a value stands in the words"


def costs_asked(text: str) -> None:
    amount, _, at = text.partition("|")
    costs.time_of(at)
    costs.time_of(at, end=True)
    assert costs.nano_of(costs.money(costs.nano_of(amount))) == costs.nano_of(amount)


def export_line(text: str) -> None:
    _bring(SimpleNamespace(), _decoded(text), Done(), True)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- HTTP


def depth(data: bytes) -> None:
    """What is not too deep can be read, and is not deeper."""
    if too_deep(data, DEPTH):
        return
    try:
        found = msgspec.json.decode(data)
    except ValueError:
        return
    assert _depth(found) <= DEPTH


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max((_depth(each) for each in inside), default=0)


def who_asks(text: str) -> None:
    authorization, _, rest = text.partition("\n")
    cookie, _, host = rest.partition("\n")
    token = token_in(authorization)
    assert token in authorization
    found = tokens.parse(token)
    assert found is None or "_".join(("hw", *found)) == token
    cookie_of(cookie)
    assert host_name(host) == host_name(host).lower()


@cache
def _keys() -> Keys:
    return Keys(Config(jwt_secret="a secret of at least thirty-two bytes", jwt_audience="us"))


def signed_token(text: str) -> None:
    """Nobody without the secret gets in. It awaits nothing: its key is at hand."""
    task = _keys().verify(text)
    try:
        task.send(None)
    except StopIteration:
        raise AssertionError("a token that nobody has signed is believed") from None
    finally:
        task.close()


@cache
def _peers() -> Peers:
    return Peers(SimpleNamespace(secret=lambda *_: "the key of all servers"))  # type: ignore[arg-type]


def peer_header(data: bytes) -> None:
    assert _peers().opened(data, "GET", "/api/jobs") is None


def last_event(text: str) -> None:
    TypeAdapter(LastEventId).validate_python(text)


def in_body(model: Any, then: Callable[[Any], object] = str) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        return then(model.model_validate_json(data))

    return read


def job_body(data: bytes) -> None:
    job = new_job(JobBody.model_validate_json(data), "own", NOW, 65_536)
    assert job.tenant == "own"


def acquire_body(data: bytes) -> None:
    body = AcquireBody.model_validate_json(data)
    host_of(body.hostname, body.hostname_hash)


def release_body(data: bytes) -> None:
    body = ReleaseBody.model_validate_json(data)
    at = hit_at(body.hit_upstream_at_ms, body.now, NOW)
    assert at is None or at <= NOW


def form(data: bytes) -> None:
    """The file comes out whole, however the body was cut."""
    kind, _, body = data.partition(b"\n")
    told = kind.decode("latin-1") or "multipart/form-data; boundary=x"
    one, other = Form(told, "file"), Form(told, "file")
    whole = one.feed(body)
    one.end()
    pieces = [piece for at in range(len(body)) for piece in other.feed(body[at : at + 1])]
    other.end()
    assert b"".join(whole) == b"".join(pieces)
    assert one.fields == other.fields


def batch_line(text: str) -> None:
    read_line(text, "/v1/chat/completions", lambda model: model != "none", 65_536, DEPTH)


def notes(data: bytes) -> None:
    try:
        said = msgspec.json.decode(data)
    except RecursionError:
        return  # the guard has refused so deep a body before
    if isinstance(said, list) and len(said) == 3:
        checkpoint = said[1] if isinstance(said[1], str) else None
        lines = said[2] if isinstance(said[2], list) else []
        Notes.checked(None, checkpoint, [tuple(each) for each in lines], 65_536)


# ---------------------------------------------------------------------- addresses and secrets


def address(text: str) -> None:
    """What is one way of writing it stays that way; and is judged like any other."""
    plain = plain_url(text)
    assert plain_url(plain) == plain
    domain_of(plain)
    check_url(plain, Allowed(()))


def opened_addresses(text: str) -> None:
    Allowed(text.split(","))


@cache
def _vault() -> Vault:
    return Vault([new_key()], "the test")


def sealed(text: str) -> None:
    _vault().unseal(text, "channel/main/api_key")
    raise AssertionError("what was never sealed opens")


def key_of_vault(text: str) -> None:
    Vault([text], "the test")


def redaction(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    redact_query(text)


# ---------------------------------------------------------------------- settings


def gate_settings(data: bytes) -> None:
    value = _object(data)
    policy_of("upstream", value)


def _object(data: bytes) -> dict[str, Any]:
    value = msgspec.json.decode(data)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


@cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="headway-fuzz-"))


def settings_file(data: bytes) -> None:
    file = _place() / "headway.toml"
    file.write_bytes(data)
    with suppress(BadSettings):
        read_config(str(file), {})
    with suppress(BadSettings):
        declared_channels(str(file), {})
    for table in TABLES:
        with suppress(BadSettings):
            table.read(str(file), {})
    with suppress(BadSettings):
        media_settings(str(file), {})
    with suppress(ValueError):
        Settings().read_file(str(file))


def environment(text: str) -> None:
    pairs = (line.partition("=") for line in text.split("\n"))
    variables = {f"HEADWAY_{name}": value for name, _, value in pairs}
    with suppress(BadSettings):
        read_config(None, variables)
    for table in TABLES:
        with suppress(BadSettings):
            table.read(None, variables)
    with suppress(BadSettings):
        media_settings(None, variables)
    with suppress(ValueError):
        Settings().read_environment(variables)


def fairqueue_config(data: bytes) -> None:
    config = fairqueue.parse(_object(data))
    config.profile("video.example")
    repr(config)


def stored_rule(text: str) -> None:
    rule_of(text).after(NOW, NOW)


def well_formed(written: bytes) -> None:
    ET.fromstring(written)


def inside(path: PurePosixPath) -> None:
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert path.parts
    assert all(len(part.encode()) <= 255 for part in path.parts)


def loaded(data: bytes) -> Mapping[str, Any]:
    value = json.loads(data)
    return value if isinstance(value, dict) else {}


def answer_of_server(data: bytes) -> httpx2.Response:
    return httpx2.Response(500, content=data, headers={"content-type": "application/json"})
