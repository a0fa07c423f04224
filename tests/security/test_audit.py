"""Every action of an operator is in the audit trail, with who it was and from where."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.document import Operation
from tests.contract.kit import Api, new_name
from tests.security.kit import Guarded

# Work that is asked for and done is in the trail of its job; nobody operates anything.
NO_ACTION = {
    "POST /api/jobs", "POST /api/work/put", "POST /api/requests/enqueue", "POST /api/batches",
    "POST /api/channels/calls",
    "POST /api/work/take", "POST /api/work/heartbeat", "POST /api/work/complete",
    "POST /api/work/{id}/heartbeat", "POST /api/work/{id}/complete",
    "POST /api/slots", "POST /api/slots/{id}/poll", "POST /api/slots/{id}/renew",
    "POST /api/slots/{id}/report", "POST /api/slots/{id}/release",
    "POST /api/slots/renew", "POST /api/slots/release",
    "POST /v1/chat/completions", "POST /v1/embeddings", "POST /v1/files", "POST /v1/batches",
    # A login, looking, and what somebody has read. What `quickadd` and
    # `subscribe` add is in the trail; they ask a site before.
    "POST /api/greader/accounts/ClientLogin", "POST /api/backend/rules/try",
    "POST /api/greader/reader/api/0/stream/items/contents",
    "POST /api/greader/reader/api/0/edit-tag",
    "POST /api/greader/reader/api/0/mark-all-as-read",
    "POST /api/greader/reader/api/0/subscription/quickadd",
    "POST /api/backend/rss/validate", "POST /api/backend/rss/parse",
    "POST /api/backend/rss/discover", "POST /api/backend/rss/subscribe",
    "POST /api/backend/articles", "PATCH /api/backend/articles",
    "PATCH /api/backend/articles/{id}", "POST /api/backend/articles/mark-read",
    "POST /api/backend/articles/{id}/archive",
    # Nobody is told here; see tests/contract/test_alerts_contract.py.
    "POST /api/alerts/test",
    "POST /api/simulate",
    "POST /api/celery/types",
    "POST /api/celery/here",
    "POST /api/celery/claims",
    # Looking what is behind an address.
    "POST /api/subscriptions/parse-collection",
}  # fmt: skip
NEEDS: dict[str, list[str]] = {"resume": ["pause"], "retry": ["cancel"], "unpin": ["pin"]}
GATES = ("lanes", "upstreams", "tools", "types")


def waiting_job(api: Api, verb: str) -> int:
    id = api.enqueue(new_name())
    for before in NEEDS.get(verb, []):
        api.post(f"/api/jobs/{id}/{before}")
    return id


def made_schedule(api: Api) -> str:
    name = new_name()
    api.post("/api/schedules", schedule_body(name), 201)
    return name


def schedule_body(name: str) -> dict[str, Any]:
    return {"name": name, "every": "30d", "job": {"type": "never"}}


def done(api: Api, operation: Operation) -> str:
    """Do it to something new. What the trail calls it."""
    if operation.name in OTHERS:
        return OTHERS[operation.name](api)
    noun, _, verb = operation.path.removeprefix("/api/").partition("/")
    verb = verb.rpartition("/")[2]
    if operation.path.startswith(("/api/jobs/{id}/", "/api/tasks/{id}/", "/api/requests/{id}/")):
        id = waiting_job(api, verb)
        bodies: dict[str, Any] = {
            "prioritise": {"priority": 2},
            "reschedule": {"at": 4_000_000_000},
        }
        api.post(operation.at(id=id), bodies.get(verb))
        return str(id)
    if noun in GATES:
        name = new_name()
        body = {"close": {"for_s": 60, "why": "maintenance"}, "settings": {"limit": 3}}.get(verb)
        sent = {} if operation.method == "DELETE" or body is None else {"json": body}
        api.ok(operation.method, operation.at(name=name), **sent)
        return f"{noun.removesuffix('s')}:{name}"
    raise AssertionError(f"{operation.name}: say how to do it in OTHERS")


def _bulk(api: Api) -> str:
    type = new_name()
    id = api.enqueue(type)
    api.post("/api/jobs/bulk", {"action": "cancel", "q": f"type:{type}", "dry_run": False})
    return str(id)


def _schedule(verb: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        name = made_schedule(api)
        if verb == "delete":
            api.ok("DELETE", f"/api/schedules/{name}", 204)
        else:
            api.post(f"/api/schedules/{name}/{verb}")
        return f"schedule:{name}"

    return act


def _hello(api: Api) -> str:
    name = new_name()
    setting = {"kind": "upstream", "name": name, "value": {"limit": 4}}
    api.post("/api/work/hello", {"worker": "w", "settings": [setting]})
    return f"upstream:{name}"


def _end_slot(api: Api) -> str:
    id = api.post("/api/slots", {"upstream": new_name()})["id"]
    api.ok("DELETE", f"/api/slots/{id}")
    return f"slot:{id}"


def _learned(verb: str, body: dict[str, Any] | None = None) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        name = learning_upstream(api)
        api.post(f"/api/upstreams/{name}/learned/{verb}", body)
        return f"upstream:{name}"

    return act


def learning_upstream(api: Api) -> str:
    name = new_name()
    api.ok("PUT", f"/api/upstreams/{name}/settings", json={"learn": True})
    return name


def _import_learned(api: Api) -> str:
    name = learning_upstream(api)
    api.post("/api/learned/import", {"items": [{"name": name, "believed": {"rpm": 60}}]})
    return f"upstream:{name}"


def made_channel(api: Api) -> str:
    code = new_name()
    api.post(
        "/api/channels", {"code": code, "model": code, "base_url": "http://127.0.0.1:9/v1"}, 201
    )
    return code


def _change_channel(api: Api) -> str:
    code = made_channel(api)
    api.ok("PATCH", f"/api/channels/{code}", json={"enabled": False})
    return f"channel:{code}"


def _remove_channel(api: Api) -> str:
    code = made_channel(api)
    api.ok("DELETE", f"/api/channels/{code}", 204)
    return f"channel:{code}"


def _cancel_call(api: Api) -> str:
    code = made_channel(api)
    api.post(f"/api/upstreams/{code}/pause")
    body = {"model": code, "input": "x"}
    id = api.post("/api/channels/calls", {"endpoint": "/v1/embeddings", "body": body}, 202)["id"]
    api.post(f"/api/channels/calls/{id}/cancel")
    return str(id)


def _budget(method: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        tenant = new_name()
        api.ok("PUT", f"/api/budgets/{tenant}", json={"period": "day", "amount": 5})
        if method == "DELETE":
            api.ok("DELETE", f"/api/budgets/{tenant}", 204)
        return f"budget:{tenant}"

    return act


def made_file(api: Api, text: str = "x") -> str:
    sent: dict[str, Any] = {"files": {"file": ("x", text.encode())}, "data": {"purpose": "batch"}}
    return str(api.ok("POST", "/v1/files", **sent)["id"])


def _delete_file(api: Api) -> str:
    id = made_file(api)
    api.ok("DELETE", f"/v1/files/{id}")
    return f"file:{id}"


def _cancel_batch(api: Api) -> str:
    code = made_channel(api)
    api.post(f"/api/upstreams/{code}/pause")
    body = {"model": code, "input": "x"}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body}
    said = {"input_file_id": made_file(api, json.dumps(line)), "endpoint": "/v1/embeddings"}
    id = api.post("/v1/batches", said)["id"]
    api.post(f"/v1/batches/{id}/cancel")
    return f"batch:{id}"


def made_feed(api: Api, **more: Any) -> str:
    """One that nobody fetches."""
    said = {"url": f"http://{new_name()}.invalid/feed", "paused": True, **more}
    return str(api.post("/api/backend/feeds", said, 201)["id"])


def _feed(method: str, *, named: bool = False) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        id = made_feed(api)
        path = "/api/backend/feeds" if named else f"/api/backend/feeds/{id}"
        said: dict[str, Any] = {"json": {"title": "x", **({"id": id} if named else {})}}
        if method == "DELETE":
            said = {"params": {"id": id}} if named else {}
        api.ok(method, path, **said)
        return f"feed:{id}"

    return act


def _refresh_feed(api: Api) -> str:
    id = made_feed(api)
    api.post("/api/backend/queue/schedule-feed", {"feed_id": id, "force_immediate": True})
    return f"feed:{id}"


def _refresh_all(api: Api) -> str:
    return f"round:{api.post('/api/backend/queue/schedule-all', {}, 202)['round_id']}"


def _import(api: Api) -> str:
    made = api.ok("POST", "/api/backend/opml", 202, content=b"<opml><body/></opml>")
    return f"round:{made['id']}"


def _folder(method: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        name = new_name()
        made_feed(api, folder=name)
        said = {"json": {"name": name, "to": f"{name}/x"}}
        if method == "DELETE":
            said = {"params": {"name": name}}
        api.ok(method, "/api/backend/folders", **said)
        return f"folder:{name}"

    return act


def made_rule(api: Api) -> str:
    said = {"name": "x", "actions": ["read"], "conditions": [{"text": new_name()}]}
    return str(api.post("/api/backend/rules", said, 201)["id"])


def _rule(method: str, more: str = "", status: int = 200) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        id = made_rule(api)
        sent = {"json": {"enabled": False}} if method == "PATCH" else {}
        api.ok(method, f"/api/backend/rules/{id}{more}", status, **sent)
        return f"rule:{id}"

    return act


def by_reader_app(api: Api, path: str, **sent: Any) -> None:
    assert api.send("POST", f"/api/greader/reader/api/0/{path}", **sent).status_code == 200


def _edited_by_reader_app(api: Api) -> str:
    id = made_feed(api)
    said = {"ac": "edit", "s": f"feed/{id}", "t": "x"}
    by_reader_app(api, "subscription/edit", data=said)
    return f"feed:{id}"


def _label(path: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        name = new_name()
        made_feed(api, folder=name)
        said = {"s": f"user/-/label/{name}", "dest": f"user/-/label/{name}x"}
        by_reader_app(api, path, data=said)
        return f"folder:{name}"

    return act


def _imported_by_reader_app(api: Api) -> str:
    by_reader_app(api, "subscription/import", content=b"<opml><body/></opml>")
    return "opml_imported"


def _asked(path: str, subject: str, **params: Any) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        api.post(path, **params)
        return subject

    return act


def _retention(method: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        sent = {"json": {"failed_days": 30}} if method == "PUT" else {}
        api.ok(method, "/api/retention", **sent)
        return "retention:jobs"

    return act


def _delete_old(api: Api) -> str:
    api.ok("DELETE", "/api/backend/articles/old")
    return "articles_delete"


def made_subscription(api: Api) -> int:
    """One for which nothing is done."""
    said = {"url": f"https://{new_name()}.example/list", "paused": True}
    return int(api.post("/api/subscriptions", said, 201)["id"])


def _subscription(method: str, path: str = "", status: int = 200) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        id = made_subscription(api)
        sent = {"json": {"title": "x"}} if method == "PATCH" else {}
        api.ok(method, f"/api/subscriptions/{id}{path}", status, **sent)
        return f"subscription:{id}"

    return act


def _failures(verb: str) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        api.post(f"/api/archive/failures/{verb}", {})
        return "failures"

    return act


def _reconcile(api: Api) -> str:
    api.post("/api/archive/reconcile", {"dry_run": True}, 202)
    return "archive"


def _account(method: str, path: str = "", status: int = 200) -> Callable[[Api], str]:
    def act(api: Api) -> str:
        name, site = new_name(), f"{new_name()}.example"
        said = {"name": name, "site": site, "cookies": "session=abcdefgh", "check_url": None}
        id = api.post("/api/archive/accounts", said, 201)["id"]
        bodies: dict[str, Any] = {"PATCH": {"enabled": False}, "PUT": {"cookies": "other=ijklmn"}}
        if (method, path) != ("POST", ""):
            sent = {"json": bodies[method]} if method in bodies else {}
            api.ok(method, f"/api/archive/accounts/{id}{path}", status, **sent)
        return f"account:{name}@{site}"

    return act


OTHERS: dict[str, Callable[[Api], str]] = {
    "DELETE /api/backend/articles/old": _delete_old,
    "POST /api/jobs/bulk": _bulk,
    "POST /api/schedules": lambda api: f"schedule:{made_schedule(api)}",
    "DELETE /api/schedules/{name}": _schedule("delete"),
    "POST /api/schedules/{name}/pause": _schedule("pause"),
    "POST /api/schedules/{name}/resume": _schedule("resume"),
    "POST /api/work/hello": _hello,
    "DELETE /api/slots/{id}": _end_slot,
    "POST /api/upstreams/{name}/learned/reset": _learned("reset"),
    "POST /api/upstreams/{name}/learned/pin": _learned("pin", {"rpm": 300}),
    "POST /api/learned/import": _import_learned,
    "POST /api/channels": lambda api: f"channel:{made_channel(api)}",
    "PATCH /api/channels/{code}": _change_channel,
    "DELETE /api/channels/{code}": _remove_channel,
    "POST /api/channels/calls/{id}/cancel": _cancel_call,
    "POST /api/channels/callback-secret": _asked(
        "/api/channels/callback-secret", "tenant:audited", tenant="audited"
    ),
    "DELETE /v1/files/{id}": _delete_file,
    "POST /v1/batches/{id}/cancel": _cancel_batch,
    "PUT /api/budgets/{tenant}": _budget("PUT"),
    "DELETE /api/budgets/{tenant}": _budget("DELETE"),
    "POST /api/backend/feeds": lambda api: f"feed:{made_feed(api)}",
    "PATCH /api/backend/feeds": _feed("PATCH", named=True),
    "DELETE /api/backend/feeds": _feed("DELETE", named=True),
    "PATCH /api/backend/feeds/{id}": _feed("PATCH"),
    "DELETE /api/backend/feeds/{id}": _feed("DELETE"),
    "POST /api/backend/queue/schedule-feed": _refresh_feed,
    "POST /api/backend/queue/schedule-all": _refresh_all,
    "POST /api/backend/opml": _import,
    "PATCH /api/backend/folders": _folder("PATCH"),
    "DELETE /api/backend/folders": _folder("DELETE"),
    "POST /api/backend/rules": lambda api: f"rule:{made_rule(api)}",
    "PATCH /api/backend/rules/{id}": _rule("PATCH"),
    "DELETE /api/backend/rules/{id}": _rule("DELETE", status=204),
    "POST /api/backend/rules/{id}/apply": _rule("POST", "/apply", 202),
    "POST /api/greader/reader/api/0/subscription/edit": _edited_by_reader_app,
    "POST /api/greader/reader/api/0/subscription/import": _imported_by_reader_app,
    "POST /api/greader/reader/api/0/rename-tag": _label("rename-tag"),
    "POST /api/greader/reader/api/0/disable-tag": _label("disable-tag"),
    "POST /api/queue/pause": _asked("/api/queue/pause", "lane:audited", scope="lane:audited"),
    "POST /api/queue/resume": _asked("/api/queue/resume", "lane:audited", scope="lane:audited"),
    "POST /api/queue/capacity": _asked("/api/queue/capacity", "lane:no_cookie", no_cookie=5),
    "POST /api/tasks/cleanup": _asked("/api/tasks/cleanup", "purge"),
    "PUT /api/retention": _retention("PUT"),
    "DELETE /api/retention": _retention("DELETE"),
}


OTHERS |= {
    "POST /api/subscriptions": lambda api: f"subscription:{made_subscription(api)}",
    "PATCH /api/subscriptions/{id}": _subscription("PATCH"),
    "DELETE /api/subscriptions/{id}": _subscription("DELETE"),
    "POST /api/subscriptions/{id}/refresh-list": _subscription("POST", "/refresh-list", 202),
    "POST /api/subscriptions/{id}/download": _subscription("POST", "/download", 202),
    "POST /api/archive/failures/retry": _failures("retry"),
    "POST /api/archive/failures/unblock": _failures("unblock"),
    "POST /api/subscriptions/{id}/podcast": _subscription("POST", "/podcast"),
    "DELETE /api/subscriptions/{id}/podcast": _subscription("DELETE", "/podcast", 204),
    "POST /api/archive/reconcile": _reconcile,
    "POST /api/archive/accounts": _account("POST"),
    "PATCH /api/archive/accounts/{id}": _account("PATCH"),
    "DELETE /api/archive/accounts/{id}": _account("DELETE", status=204),
    "PUT /api/archive/accounts/{id}/cookies": _account("PUT", "/cookies"),
    "POST /api/archive/accounts/{id}/check": _account("POST", "/check", 202),
}


def newest(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/api/audit", limit=1)["items"][0]
    return found


def test_every_route_that_changes_something_leaves_a_name(guarded_everywhere: Guarded) -> None:
    with guarded_everywhere.as_("operator") as api:
        tried = 0
        for each in api.document.operations:
            if each.method == "GET" or each.name in NO_ACTION or "/api/tokens" in each.path:
                continue
            if each.path.startswith("/api/keys"):
                continue  # for admins: see tests/contract/test_keys_contract.py
            if each.path.startswith("/api/archive/items/"):
                continue  # no request makes an item: see tests/contract/test_archive_items.py
            if each.path.startswith("/api/v0/"):
                continue  # clients' own words, and what a controller does: see its tests
            subject = done(api, each)
            row = newest(api)
            assert row["who"] == "token:operator from 127.0.0.1", each.name
            about = (str(row["job"]), row["subject"] or "", row["event"])
            assert subject in about, f"{each.name}: {row}"
            assert row["at"]
            tried += 1
    assert tried >= 45


def test_tokens_that_are_made_and_revoked_are_in_it(guarded: Guarded) -> None:
    name = new_name()
    with guarded.as_("admin") as admin:
        made = admin.post("/api/tokens", {"name": name, "scopes": ["read", "submit"]}, 201)
        row = newest(admin)
        assert (row["event"], row["subject"]) == ("token_made", f"token:{name}")
        assert (row["who"], row["detail"]) == ("token:admin from 127.0.0.1", "read, submit")
        admin.ok("DELETE", f"/api/tokens/{made['id']}", 204)
        row = newest(admin)
        assert (row["event"], row["subject"]) == ("token_revoked", f"token:{name}")


def test_what_is_refused_is_not_in_it(guarded: Guarded) -> None:
    with guarded.as_("operator") as operator, guarded.as_("alice") as alice:
        id = operator.enqueue(new_name())
        last = operator.get("/api/audit", limit=1)["items"]  # none, if this is the first test
        alice.problem(404, "POST", f"/api/jobs/{id}/cancel")
        alice.problem(403, "POST", "/api/queue/pause")
        operator.problem(409, "POST", f"/api/jobs/{id}/resume")
        assert operator.get("/api/audit", limit=1)["items"] == last


@pytest.mark.parametrize("forged", ["10.9.8.7", "10.9.8.7, 127.0.0.1", "for=10.9.8.7"])
def test_nobody_says_where_they_come_from_themselves(guarded: Guarded, forged: str) -> None:
    with guarded.as_("operator") as api:
        id = api.enqueue(new_name())
        headers = {"X-Forwarded-For": forged, "Forwarded": forged, "X-Real-IP": forged}
        api.ok("POST", f"/api/jobs/{id}/cancel", headers=headers)
        assert newest(api)["who"] == "token:operator from 127.0.0.1"
