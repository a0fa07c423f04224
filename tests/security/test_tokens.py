"""Tokens of our own and the cookie of the login page: what they open, how long, and what is kept of
them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from contextlib import closing
from typing import Any

import pytest

from headway.api import auth, tokens
from headway.api.auth import Authenticator
from headway.api.config import Config
from headway.api.problems import Problem
from headway.store import Store, open_store
from tests.contract.kit import Api, Stream, listening, new_name
from tests.hands.kit import eventually
from tests.security.kit import ALL, Answer, Guarded, send, store_of

DAY_S = 86_400.0


def bearer(guarded: Guarded, text: str, path: str = "/api/info") -> int:
    return send(guarded.url, "GET", path, authorization=f"Bearer {text}").status


def log_in(guarded: Guarded, text: str) -> Answer:
    return send(guarded.url, "POST", "/login", f"token={text}".encode())


def cookie_for(guarded: Guarded, text: str) -> str:
    return log_in(guarded, text).headers["set-cookie"].partition(";")[0]


def with_cookie(guarded: Guarded, cookie: str) -> int:
    return send(guarded.url, "GET", "/api/info", cookie=cookie).status


def to_its_end(stream: Stream) -> str:
    """What it still tells."""
    told = ""
    try:
        while True:
            told += str(stream.event())
    except AssertionError:  # it has ended
        return told


# ---------------------------------------------------------------------- showing one


@pytest.mark.parametrize("spoil", [
    lambda text: text[:-1], lambda text: text + "x", lambda text: text.upper(),
    lambda text: text.replace("hw_", "hv_"), lambda text: text.rpartition("_")[0],
    lambda text: f"hw_{'0' * 12}_{text[16:]}", lambda text: f"hw__{text[16:]}", lambda _: "hw_",
    lambda text: text[:15] + "_", lambda text: text + "\xff", lambda _: "a" * 10_000,
    lambda _: "hw_x'; drop table tokens;--_y", lambda text: f"{text} {text}", lambda _: "null",
])  # fmt: skip
def test_only_the_whole_token_opens(guarded: Guarded, spoil: Any) -> None:
    text = guarded.tokens["reader"]
    assert bearer(guarded, text) == 200
    assert bearer(guarded, spoil(text)) == 401


@pytest.mark.parametrize(
    "header", ["Basic {}", "{}", "Bearer", "Bearer ", "Token {}", "Bearer\t{}"]
)
def test_it_is_shown_in_one_way(guarded: Guarded, header: str) -> None:
    shown = header.format(guarded.tokens["reader"])
    answer = send(guarded.url, "GET", "/api/info", authorization=shown)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.tokens["reader"] not in answer.body.decode()


def test_nothing_in_an_address_opens(guarded: Guarded) -> None:
    text = guarded.tokens["admin"]
    for name in ("token", "access_token", "authorization", "headway"):
        assert send(guarded.url, "GET", f"/api/info?{name}={text}").status == 401


def test_a_wrong_token_is_refused_also_where_none_is_needed(guarded: Guarded) -> None:
    """Whoever shows one wants to know that it is wrong."""
    assert bearer(guarded, "hw_aaa_bbb", "/healthz") == 401


# ---------------------------------------------------------------------- what is kept


def test_a_token_is_shown_once_and_only_its_hash_is_kept(guarded_everywhere: Guarded) -> None:
    made = guarded_everywhere.make(new_name())
    text = made["token"]
    secret = text.split("_", 2)[2]
    assert bearer(guarded_everywhere, text) == 200
    with guarded_everywhere.as_("admin") as admin:
        listed = admin.send("GET", "/api/tokens")
        assert made["id"] in listed.text
        assert secret not in listed.text
        assert hashlib.sha256(secret.encode()).hexdigest() not in listed.text
        for path in ("/api/audit", "/api/trail"):
            assert secret not in admin.send("GET", path, params={"limit": 1000}).text
    with closing(open_store(store_of(guarded_everywhere.server))) as store:
        row = store.token(made["id"])
    assert row is not None
    assert row.hash == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(row)


def test_no_secret_is_in_the_files_of_the_store(guarded: Guarded) -> None:
    cookie_for(guarded, guarded.tokens["reader"])
    texts = [*guarded.tokens.values(), guarded.make(new_name())["token"]]
    files = [path for path in guarded.server.data.rglob("*") if path.is_file()]
    assert {"headway.db", "headway.db-wal"} <= {path.name for path in files}
    data = b"".join(path.read_bytes() for path in files)
    for text in texts:
        assert text.split("_", 2)[2].encode() not in data
        assert text.split("_", 2)[1].encode() in data


def test_others_on_the_machine_cannot_read_the_data(open_server: Any) -> None:
    assert open_server.data.stat().st_mode & 0o077 == 0


def test_it_is_known_when_a_token_was_used_last(guarded: Guarded) -> None:
    made = guarded.make(new_name())
    with guarded.as_("admin") as admin:

        def last_used() -> str | None:
            rows = admin.get("/api/tokens")["items"]
            found: str | None = next(r["last_used_at"] for r in rows if r["id"] == made["id"])
            return found

        assert last_used() is None
        assert bearer(guarded, f"hw_{made['id']}_{'x' * 43}") == 401
        assert last_used() is None  # whoever knows the id alone has not used it
        assert bearer(guarded, made["token"]) == 200
        eventually(last_used)


# ---------------------------------------------------------------------- the end of a token


def test_a_revoked_token_opens_nothing_from_then_on(guarded_everywhere: Guarded) -> None:
    made = guarded_everywhere.make(new_name())
    cookie = cookie_for(guarded_everywhere, made["token"])
    with guarded_everywhere.as_("admin") as admin:
        assert bearer(guarded_everywhere, made["token"]) == 200
        assert with_cookie(guarded_everywhere, cookie) == 200
        admin.ok("DELETE", f"/api/tokens/{made['id']}", 204)
        assert bearer(guarded_everywhere, made["token"]) == 401
        assert with_cookie(guarded_everywhere, cookie) == 401
        assert "set-cookie" not in log_in(guarded_everywhere, made["token"]).headers
        admin.problem(404, "DELETE", f"/api/tokens/{made['id']}", "unknown-token")
        rows = admin.get("/api/tokens")["items"]
        assert next(row["revoked_at"] for row in rows if row["id"] == made["id"])


def test_another_process_can_revoke_it(guarded_everywhere: Guarded) -> None:
    made = guarded_everywhere.make(new_name())
    assert bearer(guarded_everywhere, made["token"]) == 200
    with closing(open_store(store_of(guarded_everywhere.server))) as store:
        assert store.revoke_token(made["id"], 1.0)
    eventually(lambda: bearer(guarded_everywhere, made["token"]) == 401, within_s=auth.KNOWN_S + 3)


def test_a_stream_ends_when_its_token_does(guarded: Guarded) -> None:
    """Nothing that happens afterwards is told."""
    made = guarded.make(new_name())
    with (
        Api(guarded.url, made["token"]) as api,
        guarded.as_("admin") as admin,
        listening(api, "/api/events") as stream,
    ):
        admin.enqueue(new_name())
        stream.event()
        admin.ok("DELETE", f"/api/tokens/{made['id']}", 204)
        secret = new_name("afterwards")
        admin.enqueue(secret)
        assert secret not in to_its_end(stream)


# ---------------------------------------------------------------------- the cookie


def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded: Guarded) -> None:
    answer = log_in(guarded, guarded.tokens["reader"])
    assert answer.status == 303
    said = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= said
    assert not any(part.startswith("domain") for part in said)
    assert any(part.startswith("max-age=") for part in said)
    assert "secure" not in said  # or no browser would send it over http
    assert guarded.tokens["reader"].split("_", 2)[2] not in answer.headers["set-cookie"]
    assert guarded.tokens["reader"] not in answer.headers["location"]


def test_a_forged_cookie_is_none(guarded: Guarded) -> None:
    name, _, value = cookie_for(guarded, guarded.tokens["reader"]).partition("=")
    id, ends, mark = value.split(".")
    admin = guarded.tokens["admin"].split("_")[1]
    own = hmac.new(b"", f"{admin}.{ends}".encode(), "sha256").hexdigest()
    assert with_cookie(guarded, f"{name}={value}") == 200
    forged = [
        f"{admin}.{ends}.{mark}", f"{id}.{int(ends) + 1}.{mark}", f"{id}.{ends}.{mark[:-1]}",
        f"{id}.{ends}.{mark.upper()}", f"{id}.{ends}.", f"{id}.{ends}", f"{id}.{ends}.{'0' * 64}",
        f"{admin}.{ends}.{own}", f"{id}.9{ends}.{mark}", f"{id}..{mark}", f"{id}.nan.{mark}",
        f"{id}.inf.{mark}", f"{id}.{ends}.{mark}.{mark}", f".{ends}.{mark}", "..", "", "a.b.c",
        guarded.tokens["admin"], f"{id}.\xb2\xb3.{mark}", f"{id}.{ends}.\xff",
        f"{id}.-1.{mark}", f"{id}.{'9' * 5_000}.{mark}", f'"{value}x"',
    ]  # fmt: skip
    for each in forged:
        assert with_cookie(guarded, f"{name}={each}") == 401, each


def test_logging_out_takes_the_cookie_away(guarded: Guarded) -> None:
    answer = send(guarded.url, "POST", "/logout")
    assert answer.status == 303
    assert "max-age=0" in answer.headers["set-cookie"].lower()


def test_a_large_form_of_somebody_unknown_is_not_read(guarded: Guarded) -> None:
    answer = send(guarded.url, "POST", "/login", b"token=" + b"x" * 20_000)
    assert answer.status == 413
    assert json.loads(answer.body)["type"] == "too-large"


@pytest.mark.parametrize("text", ["hw_%00_secret", "hw_a%00b_secret", "hw_%0a_secret", "%ed%a0%80"])
def test_a_token_that_no_column_can_have_is_a_wrong_one(
    guarded_everywhere: Guarded, text: str
) -> None:
    answer = log_in(guarded_everywhere, text)

    assert (answer.status, answer.headers["location"]) == (303, "/login?failed=1")


# ---------------------------------------------------------------------- inside


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> float:
        return self.at


def entering(url: str, **settings: Any) -> tuple[Authenticator, Store, Clock]:
    clock = Clock()
    store = open_store(url)
    return Authenticator(Config(**settings), store, clock.now), store, clock


def enters(entry: Authenticator, authorization: str = "", cookie: str = "") -> bool:
    try:
        return asyncio.run(entry.principal(authorization, cookie, "here")) is not None
    except Problem as problem:
        if problem.status != 401:
            raise
        return False


def test_an_expired_token_opens_nothing(url: str) -> None:
    entry, store, clock = entering(url)
    with closing(store):
        row, text = tokens.new_token("x", ALL, clock.at, expires_at=clock.at + 10)
        store.add_token(row)
        cookie, _ = asyncio.run(entry.session(text, "here"))
        for before_s, opens in ((9.5, True), (1.0, False)):
            clock.at += before_s
            assert enters(entry, f"Bearer {text}") is opens  # also while it is remembered
            assert enters(entry, cookie=cookie) is opens


def test_a_session_ends_by_itself(url: str) -> None:
    entry, store, clock = entering(url)
    with closing(store):
        row, text = tokens.new_token("x", ALL, clock.at)
        store.add_token(row)
        cookie, lasts_s = asyncio.run(entry.session(text, "here"))
        assert lasts_s == auth.SESSION_S
        clock.at += auth.SESSION_S - 1
        assert enters(entry, cookie=cookie)
        clock.at += 2
        assert not enters(entry, cookie=cookie)
        assert enters(entry, f"Bearer {text}")


def test_sessions_survive_a_restart_and_no_other_server_knows_them(url: str, tmp_path: Any) -> None:
    entry, store, clock = entering(url)
    other, elsewhere, _ = entering(f"sqlite:///{tmp_path / 'other.db'}")
    with closing(store), closing(elsewhere):
        row, text = tokens.new_token("x", ALL, clock.at)
        store.add_token(row)
        elsewhere.add_token(row)
        cookie, _ = asyncio.run(entry.session(text, "here"))
        assert enters(Authenticator(Config(), store, clock.now), cookie=cookie)
        assert not enters(other, cookie=cookie)


def test_revoking_wins_over_a_look_that_is_under_way(url: str) -> None:
    """What was read before it must not be believed after it."""
    entry, store, clock = entering(url)
    with closing(store):
        row, text = tokens.new_token("x", ALL, clock.at)
        store.add_token(row)
        read = store.token

        def slowly(id: str) -> Any:
            found = read(id)
            store.revoke_token(id, clock.at)
            entry.forget(id)
            return found

        store.token = slowly  # type: ignore[method-assign]
        enters(entry, f"Bearer {text}")
        store.token = read  # type: ignore[method-assign]
        assert not enters(entry, f"Bearer {text}")


def test_a_clock_that_goes_back_does_not_prolong_anything(url: str) -> None:
    entry, store, clock = entering(url)
    with closing(store):
        row, text = tokens.new_token("x", ALL, clock.at)
        store.add_token(row)
        assert enters(entry, f"Bearer {text}")
        store.revoke_token(row.id, clock.at)
        clock.at -= DAY_S
        assert not enters(entry, f"Bearer {text}")


def test_secrets_are_compared_in_constant_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a token that is not there, so that time tells nothing about ids."""
    compared: list[tuple[Any, Any]] = []
    real = hmac.compare_digest

    def spy(a: Any, b: Any) -> bool:
        compared.append((a, b))
        return real(a, b)

    entry, store, clock = entering(url)
    with closing(store):
        row, text = tokens.new_token("x", ALL, clock.at)
        store.add_token(row)
        cookie, _ = asyncio.run(entry.session(text, "here"))
        monkeypatch.setattr(hmac, "compare_digest", spy)
        for shown in (text, f"hw_{row.id}_wrong", "hw_000000000000_wrong"):
            compared.clear()
            enters(entry, f"Bearer {shown}")
            assert len(compared) == 1
            assert {len(side) for side in compared[0]} == {64}  # two hashes
        for shown in (cookie, cookie[:-1] + "0", "000000000000.9999999999.x"):
            compared.clear()
            enters(entry, cookie=shown)
            assert len(compared) == 1
