"""Tokens that somebody else has signed: what is wrong with one is found, whatever it says."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from headway.api import jwts
from headway.api.config import Config
from headway.api.jwts import Keys, SignedToken
from headway.api.problems import Problem
from headway.errors import BadSettings
from tests.contract.kit import Api
from tests.hands.kit import eventually
from tests.security.kit import send
from tests.servers import Server, server_on

SECRET = "a-secret-of-more-than-thirty-two-characters"
PRIVATE = rsa.generate_private_key(65_537, 2_048)
PUBLIC_PEM = PRIVATE.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def claims(**more: Any) -> dict[str, Any]:
    said = {"sub": "alice", "exp": time() + 600, **more}
    return {name: value for name, value in said.items() if value is not None}


def signed(key: Any = SECRET, algorithm: str = "HS256", kid: Any = None, **more: Any) -> str:
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(claims(**more), key, algorithm, headers)


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def verified(keys: Keys, text: str) -> SignedToken:
    return asyncio.run(keys.verify(text))


def is_refused(keys: Keys, text: str) -> bool:
    with pytest.raises(Problem) as refused:
        verified(keys, text)
    return refused.value.status == 401


def shared(**settings: Any) -> Keys:
    return Keys(Config(jwt_secret=SECRET, **settings))


@pytest.fixture
def published(tmp_path: Path) -> Keys:
    """Keys from a document with the public half of one."""
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public_key("one")]}))
    return Keys(Config(jwks=str(path)))


def public_key(kid: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PRIVATE.public_key()))
    return {**found, "kid": kid, "alg": "RS256", "use": "sig"}


# ---------------------------------------------------------------------- what it says of itself


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, 0, [], {}, "HS257"])
def test_an_algorithm_of_its_own_choice_is_none(published: Keys, name: Any) -> None:
    for body in (part({"alg": name, "kid": "one"}), part({"alg": name})):
        for mark in ("", part(b"x"), "."):
            text = f"{body}.{part(claims())}.{mark}"
            assert is_refused(shared(), text)
            assert is_refused(published, text)


def test_a_public_key_is_no_shared_secret(published: Keys) -> None:
    """The oldest trick: the key that everybody has, used as if it were the secret one."""
    assert verified(published, signed(PRIVATE, "RS256", "one")).subject == "alice"
    body = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(claims())}"
    for key in (PUBLIC_PEM, PUBLIC_PEM.strip(), json.dumps(public_key("one")).encode(), b""):
        mark = hmac.new(key, body.encode(), hashlib.sha256).digest()
        assert is_refused(published, f"{body}.{part(mark)}")


def test_other_kinds_of_keys_do_not_fit(published: Keys) -> None:
    for key, algorithm in ((ec.generate_private_key(ec.SECP256R1()), "ES256"),
                           (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
                           (rsa.generate_private_key(65_537, 2_048), "RS256")):  # fmt: skip
        assert is_refused(published, signed(key, algorithm, "one"))
    assert is_refused(shared(), signed(PRIVATE, "RS256"))
    for algorithm in ("HS384", "HS512"):
        assert is_refused(shared(), signed(SECRET * 2, algorithm))


def test_a_key_in_the_token_is_not_used(published: Keys) -> None:
    mine = rsa.generate_private_key(65_537, 2_048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(mine.public_key()))
    for extra in ({"jwk": jwk}, {"jku": "http://evil.example/"}, {"x5u": "http://evil.example/"},
                  {"x5c": ["x"]}):  # fmt: skip
        text = jwt.encode(claims(), mine, "RS256", {"kid": "one", **extra})
        assert is_refused(published, text)


@pytest.mark.parametrize("kid", [
    "../../../dev/null", "/dev/null", "one\x00", "one' or '1'='1", "", "two", "ONE", "a" * 4_000,
    "http://evil.example/keys", "one\n",
])  # fmt: skip
def test_the_name_of_a_key_is_only_a_name(published: Keys, kid: str) -> None:
    assert is_refused(published, signed(PRIVATE, "RS256", kid))


@pytest.mark.parametrize("kid", [1, None, [], {"a": 1}, True])
def test_and_nothing_else(published: Keys, kid: Any) -> None:
    text = f"{part({'alg': 'RS256', 'kid': kid})}.{part(claims())}.{part(b'x')}"
    assert is_refused(published, text)


@pytest.mark.parametrize("header", [
    b"[" * 5_000, b'{"alg": ' + b"[" * 4_000, b"{}", b"[]", b"null", b"\xff", b"", b"1e999",
    b'{"alg": "HS256", "crit": ["exp"]}', b'{"alg": "HS256", "b64": false, "crit": ["b64"]}',
])  # fmt: skip
def test_a_header_made_to_break_something_is_refused(published: Keys, header: bytes) -> None:
    text = f"{part(header)}.{part(claims())}.{part(b'x')}"
    assert is_refused(shared(), text)
    assert is_refused(published, text)


def test_a_huge_token_is_not_even_looked_at() -> None:
    assert is_refused(shared(), signed(more="x" * 10_000))


# ---------------------------------------------------------------------- what it claims


@pytest.mark.parametrize("wrong", [
    {"exp": None}, {"exp": 1}, {"exp": "soon"}, {"exp": True}, {"sub": None}, {"sub": ""},
    {"sub": 5}, {"sub": ["alice"]}, {"sub": "a\x00b"}, {"sub": "a\nb"}, {"sub": "\x1b[31m"},
    {"sub": "a" * 201}, {"sub": "\ud800"}, {"nbf": 4_000_000_000}, {"iat": 4_000_000_000},
    {"scope": 5}, {"scope": {"read": 1}}, {"tenant": {"a": 1}}, {"tenant": 7}, {"tenant": ["x"]},
    {"tenant": "a\x00"}, {"exp": float("inf")}, {"exp": float("nan")}, {"exp": 10**400},
])  # fmt: skip
def test_claims_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    """Though they are signed: whoever signs may copy what users have typed."""
    said = json.dumps(claims(**wrong)).encode()
    text = jwt.api_jws.PyJWS().encode(said, SECRET, "HS256")
    assert is_refused(shared(), text)


def test_an_expired_one_says_so() -> None:
    with pytest.raises(Problem, match="it has expired; get a new one"):
        verified(shared(), signed(exp=time() - 60))


def test_for_whom_and_by_whom_must_fit_if_it_is_set() -> None:
    keys = shared(jwt_audience="headway", jwt_issuer="https://issuer.example")
    right = {"aud": "headway", "iss": "https://issuer.example"}
    assert verified(keys, signed(**right)).subject == "alice"
    assert verified(keys, signed(**{**right, "aud": ["x", "headway"]})).subject == "alice"
    wrongs: list[dict[str, Any]] = [
        {"aud": "other"}, {"aud": None}, {"aud": []}, {"aud": 5}, {"iss": None}, {"iss": ""},
        {"iss": "https://issuer.example/"},
    ]  # fmt: skip
    for wrong in wrongs:
        assert is_refused(keys, signed(**{**right, **wrong}))


def test_a_tenant_is_what_it_says_and_else_the_subject() -> None:
    assert verified(shared(), signed()).tenant == "alice"
    assert verified(shared(), signed(tenant="team")).tenant == "team"
    assert verified(shared(), signed(scope="read operate")).tenant == "alice"
    assert verified(shared(), signed(scope="admin")).tenant is None
    assert verified(shared(), signed()).scopes == {"read", "submit"}
    assert verified(shared(), signed(scope="read root *")).scopes == {"read"}
    assert verified(shared(), signed(scopes=["submit", "ADMIN", 5])).scopes == {"submit"}
    assert verified(shared(), signed(scope="")).scopes == frozenset()


@pytest.mark.parametrize("wrong", [
    {"jwt_secret": "short"}, {"jwt_secret": SECRET, "jwks": "keys.json"},
    {"jwks": "http://keys.example/x"}, {"jwks": "http://localhost.evil.example/x"},
])  # fmt: skip
def test_settings_that_would_let_others_in_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(BadSettings):
        Config(**wrong).check()  # type: ignore[arg-type]


def test_keys_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    for content in ("", "{}", "[]", '{"keys": []}', "\x00"):
        path = tmp_path / "keys.json"
        path.write_text(content)
        with pytest.raises(BadSettings, match="has no keys"):
            Keys(Config(jwks=str(path)))


# ---------------------------------------------------------------------- keys from an address


class KeyServer:
    def __init__(self) -> None:
        self.asked = 0
        self.up = True
        owner = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked += 1
                self.send_response(200 if owner.up else 500)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": [public_key("one")]}).encode())

            def log_message(self, format: str, *args: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.http.server_port}/keys"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def key_server() -> Iterator[KeyServer]:
    server = KeyServer()
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_keys_that_nobody_has_do_not_keep_the_key_server_busy(key_server: KeyServer) -> None:
    keys = Keys(Config(jwks=key_server.url))

    async def many() -> list[Any]:
        own = signed(PRIVATE, "RS256", "one")
        assert (await keys.verify(own)).subject == "alice"
        strangers = [signed(PRIVATE, "RS256", f"no-{number}") for number in range(50)]
        asked = [keys.verify(text) for text in (*strangers, own)]
        return await asyncio.gather(*asked, return_exceptions=True)

    *refused, own = asyncio.run(many())
    assert isinstance(own, SignedToken)
    assert all(isinstance(each, Problem) and each.status == 401 for each in refused)
    assert key_server.asked <= 2


def test_a_key_server_that_is_down_is_not_asked_for_each_request(key_server: KeyServer) -> None:
    key_server.up = False
    keys = Keys(Config(jwks=key_server.url))

    async def many() -> list[Any]:
        texts = [signed(PRIVATE, "RS256", "one") for _ in range(20)]
        return await asyncio.gather(*map(keys.verify, texts), return_exceptions=True)

    refused = asyncio.run(many())
    assert all(isinstance(each, Problem) and each.status == 503 for each in refused)
    assert all(each.headers["Retry-After"] for each in refused)
    assert key_server.asked == 1


def test_a_new_key_is_found_and_an_old_one_forgotten(
    key_server: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys(Config(jwks=key_server.url))
    now = 1_000.0
    monkeypatch.setattr(jwts, "monotonic", lambda: now)
    assert verified(keys, signed(PRIVATE, "RS256", "one")).subject == "alice"
    key_server.up = False
    now += jwts.KEYS_S + 1  # they might have been withdrawn
    with pytest.raises(Problem) as refused:
        verified(keys, signed(PRIVATE, "RS256", "one"))
    assert refused.value.status == 503


# ---------------------------------------------------------------------- at the door


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_on("sqlite", auth="required", jwt_secret=SECRET) as started:
        yield started


def test_a_signed_token_is_its_tenant(server: Server) -> None:
    with Api(server.url, signed()) as alice, Api(server.url, signed(sub="bob")) as bob:
        id = alice.enqueue("mine")
        assert alice.job(id)["tenant"] == "alice"
        bob.problem(404, "GET", f"/api/jobs/{id}", "unknown-job")
        alice.problem(403, "POST", f"/api/jobs/{id}/cancel", "scope")
        alice.problem(403, "GET", "/api/tokens", "scope")
        assert alice.get("/api/info")["who"] == "jwt:alice"
    with Api(server.url, signed(sub="chief", scope="admin")) as chief:
        chief.post(f"/api/jobs/{id}/cancel")
        assert chief.get("/api/audit")["items"][0]["who"] == "jwt:chief from 127.0.0.1"


def test_the_server_refuses_what_is_wrong(server: Server) -> None:
    nested = f"{part(b'[' * 5_000)}.{part(claims())}.{part(b'x')}"
    for text in (signed("x" * 40), signed(exp=1), signed(exp=None), nested,
                 f"{part({'alg': 'none'})}.{part(claims(scope='admin'))}."):  # fmt: skip
        answer = send(server.url, "GET", "/api/info", authorization=f"Bearer {text}")
        assert answer.status == 401
        assert "invalid_token" in answer.headers["www-authenticate"]
        assert text not in answer.body.decode()
        assert send(server.url, "GET", "/api/info", cookie=f"headway={text}").status == 401


def test_one_can_log_in_with_it_and_it_ends_when_it_says(server: Server) -> None:
    text = signed(exp=time() - jwts.LEEWAY_S + 1.5)
    answer = send(server.url, "POST", "/login", f"token={text}".encode())
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert send(server.url, "GET", "/api/info", cookie=cookie).status == 200
    lasts = int(answer.headers["set-cookie"].lower().partition("max-age=")[2].partition(";")[0])
    assert lasts <= 2
    eventually(lambda: send(server.url, "GET", "/api/info", cookie=cookie).status == 401)
