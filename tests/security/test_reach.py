"""Who can reach a server at all, and what each kind of token opens: route by route, as the document
lists them.
"""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing
from typing import Any

import pytest

from headway import App
from headway.api.config import Config
from headway.api.fairqueue.service import FairQueue
from headway.api.serving import check_safe
from headway.api.tokens import new_token
from headway.errors import BadSettings
from tests.contract.document import Operation, document_of
from tests.contract.kit import Api
from tests.security.kit import ALL, Guarded, Wire, add_token, prepared, send

OPEN = {"/healthz", "/readyz"}
SECRET_ADDRESSES = "/podcasts/"  # the address is the key
SUBMITTING = {"POST /api/jobs", "POST /api/work/put", "POST /api/requests/enqueue",
              "POST /api/batches", "POST /api/channels/calls",
              "GET /api/channels/callback-secret", "POST /api/slots", "POST /api/slots/renew",
              "POST /api/slots/release", "POST /api/slots/{id}/poll", "POST /api/slots/{id}/renew",
              "POST /api/slots/{id}/report", "POST /api/slots/{id}/release",
              "DELETE /api/slots/{id}", "POST /api/v0/fairqueue/acquire",
              "POST /api/v0/fairqueue/release", "POST /api/v0/fairqueue/cancel",
              "POST /api/v0/fairqueue/report",
              "POST /v1/chat/completions", "POST /v1/embeddings", "GET /v1/models",
              "GET /v1/models/{model}", "POST /v1/files", "DELETE /v1/files/{id}",
              "POST /v1/batches", "POST /v1/batches/{id}/cancel",
              "POST /api/backend/feeds", "PATCH /api/backend/feeds", "DELETE /api/backend/feeds",
              "PATCH /api/backend/feeds/{id}", "DELETE /api/backend/feeds/{id}",
              "PATCH /api/backend/folders", "DELETE /api/backend/folders",
              "POST /api/backend/queue/schedule-feed"}  # fmt: skip
READER_APPS = "/api/greader/"
LOGIN = "/api/greader/accounts/ClientLogin"
SUBMITTING |= {
    "POST /api/backend/articles", "PATCH /api/backend/articles",
    "PATCH /api/backend/articles/{id}", "POST /api/backend/articles/mark-read",
    "POST /api/backend/articles/{id}/archive", "DELETE /api/backend/articles/old",
    "POST /api/backend/rules", "PATCH /api/backend/rules/{id}", "DELETE /api/backend/rules/{id}",
    "POST /api/backend/rules/{id}/apply",
    "POST /api/backend/queue/schedule-all", "POST /api/backend/opml",
    *(f"POST /api/backend/rss/{each}" for each in ("validate", "parse", "discover", "subscribe")),
    *(f"POST /api/greader/reader/api/0/{each}" for each in (
        "edit-tag", "mark-all-as-read", "rename-tag", "disable-tag", "subscription/edit",
        "subscription/quickadd", "subscription/import")),
}  # fmt: skip
SUBMITTING |= {
    "POST /api/subscriptions/{id}/podcast", "DELETE /api/subscriptions/{id}/podcast",
    "POST /api/archive/reconcile",
    "POST /api/subscriptions", "PATCH /api/subscriptions/{id}", "DELETE /api/subscriptions/{id}",
    "POST /api/subscriptions/{id}/refresh-list", "POST /api/subscriptions/{id}/download",
    "POST /api/subscriptions/parse-collection", "DELETE /api/archive/items/{id}",
    *(f"POST /api/archive/items/{{id}}/{each}" for each in ("retry", "unblock", "skip")),
    *(f"POST /api/archive/failures/{each}" for each in ("retry", "unblock")),
}  # fmt: skip
# Looking at what a body names.
LOOKING = {"POST /api/backend/rules/try", "POST /api/greader/reader/api/0/stream/items/contents"}
KEPT = re.compile("/api/(tokens|keys|archive/accounts)")  # not even for readers
CONTROL = {"/api/v0/health", "/api/v0/refresh", "/api/v0/flush"}  # with a token of their own


def operations(url: str) -> list[Operation]:
    return document_of(url).operations


# ---------------------------------------------------------------------- starting


def test_a_server_that_others_can_reach_does_not_start_without_a_token() -> None:
    with prepared("sqlite", host="0.0.0.0") as server:
        started = subprocess.run(
            server._command(), env=server._environment(), capture_output=True, timeout=60,
            check=False, text=True,
        )  # fmt: skip
    said = started.stdout + started.stderr
    assert started.returncode != 0
    assert "there is no token yet" in said
    assert "headway tokens create" in said
    assert "--scope admin" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("where", [
    {"host": "0.0.0.0"}, {"host": "::"}, {"host": "192.168.1.5"}, {"auth": "required"},
    {"trusted_proxies": "127.0.0.1"},
])  # fmt: skip
def test_nor_with_tokens_that_are_worth_nothing(url: str, where: dict[str, str]) -> None:
    config = Config(data="somewhere", **where)  # type: ignore[arg-type]
    app = App(url)
    with closing(app):
        revoked, _ = new_token("revoked", ALL, app.now())
        expired, _ = new_token("expired", ALL, 1.0, expires_at=2.0)
        for row in (revoked, expired):
            app.store.add_token(row)
        app.store.revoke_token(revoked.id, app.now())
        with pytest.raises(BadSettings, match="there is no token yet; make one with"):
            check_safe(config, app, FairQueue())
        app.store.add_token(new_token("good", ALL, app.now())[0])
        check_safe(config, app, FairQueue())


def test_the_message_does_not_show_where_the_store_is(url: str) -> None:
    config = Config(host="0.0.0.0", dsn="postgresql://u:canary-word@h/d")
    with closing(App(url)) as app, pytest.raises(BadSettings) as refused:
        check_safe(config, app, FairQueue())
    assert "canary-word" not in str(refused.value)


def test_with_a_token_it_starts_and_lets_in_whoever_has_it() -> None:
    with prepared("sqlite", host="0.0.0.0") as server:
        token = add_token(server, "x", ALL)
        server.start()
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert send(url, "GET", "/api/jobs").status == 401
        assert send(url, "GET", "/api/jobs", host="whatever.example").status == 401
        with Api(url, token) as api:
            assert api.get("/api/info")["open"] is False
        everything_needs_a_token(url)


@pytest.mark.parametrize(("host", "is_open"), [
    ("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True),
    ("0.0.0.0", False), ("::", False), ("192.168.1.5", False), ("example.org", False),
    ("localhost.example.org", False), ("127.0.0.1.nip.io", False), ("::ffff:10.0.0.1", False),
    ("", False), ("127.1", False), ("2130706433", False),
])  # fmt: skip
def test_only_loopback_is_open(host: str, is_open: bool) -> None:
    assert Config(host=host).open is is_open
    assert Config(host=host, auth="required").open is False
    assert Config(host=host, trusted_proxies="127.0.0.1").open is False


# ---------------------------------------------------------------------- without a token


def everything_needs_a_token(url: str) -> None:
    tried = 0
    for each in operations(url):
        if each.path in OPEN:
            assert send(url, each.method, each.at()).status == 200
            continue
        if each.path in CONTROL or each.path.startswith(SECRET_ADDRESSES):
            assert send(url, each.method, each.at(), b"{}").status in (404, 409)
            continue
        bodies = [b"", b"{}", b"[[[[", b"\xff"] if each.method != "GET" else [b""]
        if each.path == LOGIN:
            bodies = bodies[:3]  # its body is read, so that it can be refused for what it is
        for body in bodies:
            answer = send(url, each.method, each.at(), body, content_type="application/json")
            assert answer.status == 401, each.name
            assert answer.headers["www-authenticate"] == "Bearer"
            if each.path.startswith(READER_APPS):
                assert answer.headers["content-type"] == "text/plain; charset=utf-8"
                tried += 1
                continue
            said = json.loads(answer.body)
            if each.path.startswith("/v1/"):
                assert answer.headers["content-type"] == "application/json"
                assert said["error"]["code"] == "invalid_api_key"
            else:
                assert answer.headers["content-type"] == "application/problem+json"
                assert said["type"] == "no-token"
            tried += 1
    assert tried > 100


def test_every_route_needs_a_token(guarded: Guarded) -> None:
    everything_needs_a_token(guarded.url)


def test_what_is_not_there_is_not_told_either(guarded: Guarded) -> None:
    for path in ("/api/nothing", "/api/jobs/1/nothing", "/api/../healthz", "/api/", "/v1/nothing"):
        assert send(guarded.url, "GET", path).status == 401
    assert send(guarded.url, "PATCH", "/api/jobs").status == 401


@pytest.mark.parametrize("path", [
    "/api//jobs", "//api/jobs", "/API/jobs", "/api/jobs/", "/api%2fjobs", "/./api/jobs",
    "/%61pi/jobs", "/api/jobs;x", "/metrics/",
])  # fmt: skip
def test_no_spelling_of_a_path_leads_around_it(guarded: Guarded, path: str) -> None:
    assert send(guarded.url, "GET", path).status in (401, 404)
    assert send(guarded.url, "POST", path, b'{"type": "x"}').status in (401, 404, 405)


def test_a_body_of_somebody_unknown_is_not_read(guarded: Guarded) -> None:
    """Or memory could be filled by whoever reaches the port."""
    for path in ("/api/jobs", "/v1/chat/completions"):
        with Wire(guarded.url) as wire:
            wire.send(wire.head("POST", path, content_length="8000000") + b"\r\n")
            assert wire.answer().status == 401  # nothing of it was sent


def test_pages_can_be_had_and_lead_to_the_login(guarded: Guarded) -> None:
    answer = send(guarded.url, "GET", "/")
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    for path in ("/login", "/docs", "/openapi.json", "/static/style.css"):
        assert send(guarded.url, "GET", path).status == 200


# ---------------------------------------------------------------------- with little


def refusals(guarded: Guarded, holder: str) -> dict[str, int]:
    """What each route answers to this holder, asked for nothing in particular."""
    token = guarded.tokens[holder]
    said = {"authorization": f"Bearer {token}", "content_type": "application/json"}
    found = {}
    for each in operations(guarded.url):
        if each.path in {*OPEN, *CONTROL, LOGIN} or (
            each.path.endswith("/events") and "{" not in each.path
        ):
            continue
        if each.path.startswith(SECRET_ADDRESSES):
            continue
        body = b"" if each.method == "GET" else b"{}"
        path = each.at(id=987_654_321, name="not-there")
        found[each.name] = send(guarded.url, each.method, path, body, **said).status
    return found


def test_reading_changes_nothing(guarded: Guarded) -> None:
    for name, status in refusals(guarded, "reader").items():
        if name in LOOKING:
            assert status in (200, 422), name
        elif not name.startswith("GET ") or KEPT.search(name) or name in SUBMITTING:
            assert status == 403, name
        else:
            assert status in (200, 404), name


def test_submitting_is_no_more_than_that(guarded: Guarded) -> None:
    for name, status in refusals(guarded, "submitter").items():
        if name in SUBMITTING:
            assert status in (200, 201, 202, 400, 404, 422), name
        else:
            assert status == 403, name


def test_operating_makes_no_tokens(guarded: Guarded) -> None:
    found = refusals(guarded, "operator")
    for name, status in found.items():
        for_admins = "/api/tokens" in name or "/api/keys" in name
        assert (status == 403) == for_admins, (name, status)


def test_ruling_over_one_tenant_makes_no_tokens_either(guarded: Guarded) -> None:
    found = refusals(guarded, "alice-rules")
    for name in ("GET /api/tokens", "POST /api/tokens", "DELETE /api/tokens/{id}"):
        assert found[name] == 403


def test_a_token_cannot_make_itself_more(guarded: Guarded) -> None:
    body: dict[str, Any] = {"name": "more", "scopes": ["admin"]}
    for holder in ("operator", "alice", "alice-rules", "reader", "submitter"):
        with guarded.as_(holder) as api:
            api.problem(403, "POST", "/api/tokens", json=body)
