"""Accounts over HTTP: who may touch them, what is shown of them, and that no cookie comes out."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name
from tests.contract.media_kit import Archivist, Desk, media_desk
from tests.hands.kit import eventually

ACCOUNTS = "/api/archive/accounts"
CANARY = "canary-7f31c0ffee-of-a-login"
NETSCAPE = (
    "# Netscape HTTP Cookie File\n"
    f".bilibili.com\tTRUE\t/\tTRUE\t1999999999\tSESSDATA\t{CANARY}\n"
    ".bilibili.com\tTRUE\t/\tTRUE\t1999999999\tbili_jct\tcanary-second-cookie\n"
)
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


class Receiver:
    """Whoever wants to be told."""

    def __init__(self) -> None:
        receiver = self
        self.heard: list[tuple[dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.heard.append((headers, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/hook"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


@pytest.fixture(scope="module")
def desk(receiver: Receiver) -> Iterator[Desk]:
    told = {"media_notify_url": receiver.url, "media_notify_secret": SECRET, "log_level": "debug"}
    with media_desk(**told) as made:
        yield made


@pytest.fixture(scope="module")
def keeper(desk: Desk) -> Archivist:
    return desk.keeper()


def added(keeper: Api, **more: Any) -> JSON:
    said = {"name": new_name("account"), "site": "bilibili.com", "cookies": NETSCAPE,
            "check_url": None, **more}  # fmt: skip
    return keeper.post(ACCOUNTS, said, 201)


def let_go_on(keeper: Api) -> None:
    """All that waits, checks of accounts too."""
    keeper.post("/api/queue/resume", scope="all")


# ---------------------------------------------------------------------- what they are


def test_an_account_is_added_shown_changed_and_removed(keeper: Archivist) -> None:
    made = added(keeper, name="first")
    path = f"{ACCOUNTS}/{made['id']}"
    assert (made["name"], made["site"], made["enabled"]) == ("first", "bilibili.com", True)
    assert (made["status"], made["reason"], made["usable"]) == ("unchecked", "", True)
    assert (made["uses"], made["failures"], made["strikes"], made["in_use"]) == (0, 0, 0, 0)
    assert made["cookie_names"] == ["SESSDATA", "bili_jct"]
    assert made["expires_at"].startswith("2033-")
    assert made["check_url"] is None
    assert keeper.get(path)["name"] == "first"
    (listed,) = (each for each in keeper.get(ACCOUNTS)["items"] if each["id"] == made["id"])
    assert "cookie_names" not in listed
    assert keeper.get(ACCOUNTS, site="elsewhere.example")["items"] == []
    changed = keeper.ok("PATCH", path, json={"name": "second", "enabled": False})
    assert (changed["name"], changed["enabled"], changed["usable"]) == ("second", False, False)
    assert changed["next_check_at"] is None
    assert keeper.ok("PATCH", path, json={"enabled": True})["usable"]
    keeper.ok("DELETE", path, 204)
    for method, more in (("GET", {}), ("DELETE", {}), ("PATCH", {"json": {"enabled": True}})):
        keeper.problem(404, method, path, "unknown-account", **more)
    keeper.problem(404, "POST", f"{path}/check", "unknown-account")
    said = {"cookies": NETSCAPE}
    keeper.problem(404, "PUT", f"{path}/cookies", "unknown-account", json=said)


@pytest.mark.parametrize(
    "cookies",
    [
        NETSCAPE,
        f"SESSDATA={CANARY}; bili_jct=canary-second-cookie",
        json.dumps([{"name": "SESSDATA", "value": CANARY, "domain": ".bilibili.com"}]),
    ],
    ids=["netscape", "header", "json"],
)
def test_cookies_come_as_people_have_them(keeper: Archivist, cookies: str) -> None:
    assert "SESSDATA" in added(keeper, cookies=cookies)["cookie_names"]


def test_the_check_url_of_a_known_site_is_the_usual_one(keeper: Archivist) -> None:
    said = {"name": new_name(), "site": "bilibili.com", "cookies": NETSCAPE}
    made = keeper.post(ACCOUNTS, said, 201)
    assert made["check_url"] == "https://api.bilibili.com/x/web-interface/nav"
    assert made["next_check_at"] is not None
    path = f"{ACCOUNTS}/{made['id']}"
    assert keeper.ok("PATCH", path, json={"check_url": None})["check_url"] is None
    keeper.ok("DELETE", path, 204)


def test_new_cookies_take_the_place_of_the_old_ones(keeper: Archivist) -> None:
    made = added(keeper)
    path = f"{ACCOUNTS}/{made['id']}"
    renewed = keeper.ok("PUT", f"{path}/cookies", json={"cookies": "other=canary-of-another-one"})
    assert renewed["cookie_names"] == ["other"]
    keeper.ok("DELETE", path, 204)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"site": "no site at all"},
        {"site": 5},
        {"cookies": ""},
        {"cookies": f"this is no cookie but {CANARY}"},
        {"cookies": {"SESSDATA": CANARY}},
        {"cookies": f".elsewhere.example\tTRUE\t/\tTRUE\t1999999999\tSESSDATA\t{CANARY}"},
        {"cookies": f".bilibili.com\tTRUE\t/\tTRUE\t1000000000\tSESSDATA\t{CANARY}"},
        {"check_url": "https://elsewhere.example/nav"},
        {"check_url": "ftp://bilibili.com/"},
        {"check_url": "no address"},
        {"more": CANARY},
    ],
    ids=str,
)
def test_what_is_wrong_is_said_without_what_was_sent(keeper: Archivist, wrong: JSON) -> None:
    said = {"name": new_name(), "site": "bilibili.com", "cookies": NETSCAPE, **wrong}
    problem = keeper.problem(422, "POST", ACCOUNTS, json=said)
    assert "canary" not in json.dumps(problem)


def test_two_accounts_of_a_site_have_two_names(keeper: Archivist) -> None:
    made = added(keeper)
    said = {"name": made["name"], "site": "BILIBILI.com", "cookies": NETSCAPE}
    problem = keeper.problem(409, "POST", ACCOUNTS, "duplicate", json=said)
    assert "another name" in problem["detail"]
    keeper.ok("DELETE", f"{ACCOUNTS}/{made['id']}", 204)


# ---------------------------------------------------------------------- who may


def test_accounts_are_for_operators_who_are_bound_to_no_tenant(
    desk: Desk, keeper: Archivist
) -> None:
    made = added(keeper)
    path = f"{ACCOUNTS}/{made['id']}"
    cookies = {"json": {"cookies": NETSCAPE}}
    asked: list[tuple[str, str, Any]] = [
        ("GET", ACCOUNTS, {}), ("GET", path, {}), ("DELETE", path, {}),
        ("POST", f"{path}/check", {}), ("PUT", f"{path}/cookies", cookies),
        ("PATCH", path, {"json": {"enabled": False}}),
        ("POST", ACCOUNTS, {"json": {"name": "x", "site": "x.example", "cookies": "a=bcdefg"}}),
    ]  # fmt: skip
    bound = desk.archivist("", "read", "submit", "operate")
    ruling = desk.archivist("", "read", "submit")
    for method, where, more in asked:
        bound.problem(403, method, where, "tenant", **more)
        ruling.problem(403, method, where, "scope", **more)
    assert keeper.get(path)["enabled"]
    keeper.ok("DELETE", path, 204)


# ---------------------------------------------------------------------- trying


def test_a_check_is_a_job_that_asks_the_site(desk: Desk, keeper: Archivist) -> None:
    url = desk.site.page("/account", b"hello")
    host = "127.0.0.1"
    made = added(keeper, site=host, cookies="login=canary-good", check_url=url)
    path = f"{ACCOUNTS}/{made['id']}"
    job = keeper.post(f"{path}/check", None, 202)
    assert job["type"] == "media.check_account"
    assert job["status"] in ("pending", "queued")
    again = keeper.post(f"{path}/check", None, 202)
    assert again["id"] == job["id"]
    let_go_on(keeper)
    try:
        seen = eventually(lambda: (now := keeper.get(path))["checked_at"] and now)
        assert (seen["status"], seen["reason"]) == ("healthy", "")
        assert eventually(lambda: keeper.get(path)["next_check_at"])
        assert desk.site.asked("/account")[0].headers["Cookie"] == "login=canary-good"
        desk.site.page("/account", b"who are you?", status=401)
        keeper.post(f"{path}/check", None, 202)
        ended = eventually(lambda: (now := keeper.get(path))["status"] == "expired" and now)
        assert "replace its cookies" in ended["reason"]
    finally:
        desk.pause()
    keeper.ok("PATCH", path, json={"enabled": False})
    problem = keeper.problem(409, "POST", f"{path}/check", "account-off")
    assert "enabled" in problem["detail"]


def test_whoever_wants_to_know_is_told_in_a_message_that_can_be_verified(
    desk: Desk, keeper: Archivist, receiver: Receiver
) -> None:
    """After the account of the test before has expired."""
    let_go_on(keeper)
    try:
        headers, body = eventually(lambda: next(
            (each for each in receiver.heard if b"account.expired" in each[1]), None))  # fmt: skip
    finally:
        desk.pause()
    assert json.loads(body)["site"] == "127.0.0.1"
    assert b"canary" not in body
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mark = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mark}"


# ---------------------------------------------------------------------- what is written down


def test_who_did_it_is_in_the_trail(keeper: Archivist) -> None:
    name = new_name("account")
    made = added(keeper, name=name)
    path = f"{ACCOUNTS}/{made['id']}"
    keeper.ok("PUT", f"{path}/cookies", json={"cookies": NETSCAPE})
    keeper.ok("PATCH", path, json={"enabled": False})
    keeper.ok("DELETE", path, 204)
    found = [each for each in keeper.get("/api/audit")["items"]
             if each["subject"] == f"account:{name}@bilibili.com"]  # fmt: skip
    assert [each["event"] for each in found] == [
        "account_removed", "account_changed", "account_cookies_replaced", "account_added",
    ]  # fmt: skip
    assert all(each["who"] == "jwt:keeper from 127.0.0.1" for each in found)


def test_no_cookie_is_anywhere_but_sealed(desk: Desk, keeper: Archivist) -> None:
    added(keeper)
    for path in (ACCOUNTS, "/api/audit", "/api/trail", "/api/jobs", "/api/settings",
                 "/metrics", "/api/archive"):  # fmt: skip
        assert "canary" not in keeper.send("GET", path).text, path
    assert "canary" not in desk.server.printed()
    for file in desk.server.data.rglob("*"):
        if file.is_file():
            assert b"canary" not in file.read_bytes(), file
