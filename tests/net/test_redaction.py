"""No secret survives redaction, all else does, and it costs little."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.net import redaction
from headway.net.redaction import MASK, SECRETS, Secrets, redact, redact_query, redact_value

CANARY = "Canary7f3kQz91"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl_-x"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{CANARY}\nabc==\n-----END RSA PRIVATE KEY-----"


@pytest.fixture
def known() -> Iterator[Secrets]:
    """What a test adds is forgotten after it."""
    before = dict(SECRETS._known)
    yield SECRETS
    for secret in set(SECRETS._known) - set(before):
        SECRETS.discard(secret)


# --- what is hidden


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"hw_ab12cd_{CANARY} was used", "hw_ab12cd_[redacted] was used"),
        (f"hw_ab12cd_-_{CANARY}_-,", "hw_ab12cd_[redacted],"),
        (f"Bearer {CANARY} is wrong", "Bearer [redacted] is wrong"),
        (f"bearer%20{CANARY}", "bearer%20[redacted]"),
        (f"Bearer hw_ab12cd_{CANARY}", "Bearer hw_ab12cd_[redacted]"),
        (f"Basic {CANARY}==, and", "Basic [redacted], and"),
        (f"Authorization: Bearer {CANARY}\nHost: a", "Authorization: [redacted]\nHost: a"),
        (f"proxy-authorization: Digest a, b={CANARY}", "proxy-authorization: [redacted]"),
        (f"Authorization: Bearer hw_ab12cd_{CANARY}", "Authorization: hw_ab12cd_[redacted]"),
        (f"Cookie: a=1; b={CANARY}\r\nHost: a", "Cookie: [redacted]\r\nHost: a"),
        (f"set-cookie: sid={CANARY}; Path=/", "set-cookie: [redacted]"),
        (f"{{'cookie': 'a=1; b={CANARY}', 'x': 1}}", "{'cookie': '[redacted]', 'x': 1}"),
        (f"[(b'cookie', b'a={CANARY}'), 1]", "[(b'cookie', b'[redacted]'), 1]"),
        (f"a {JWT} b", "a [redacted] b"),
        (f"x%20{JWT}", "x%20[redacted]"),
        (f"www.eyJ.eyJ{CANARY}.{CANARY}.{CANARY}!", "www.[redacted]!"),
        (f"eyJlbmMi..{CANARY}.{CANARY}.{CANARY} is encrypted", "[redacted] is encrypted"),
        (f"eyJhbGci.eyJ{CANARY}. is not signed", "[redacted] is not signed"),
        (f"key sk-proj-{CANARY}.", "key sk-[redacted]."),
        (f"sk_live_{CANARY}", "sk_live_[redacted]"),
        (f"ghp_{CANARY}{CANARY}", "ghp_[redacted]"),
        (f"postgresql://ann:{CANARY}@db:5432/x", "postgresql://ann:[redacted]@db:5432/x"),
        (f"postgresql://ann:p@{CANARY}@db/x", "postgresql://ann:[redacted]@db/x"),
        (f"redis://:{CANARY}@db/0", "redis://:[redacted]@db/0"),
        (f"https://{CANARY}{CANARY}@git.example/a", "https://[redacted]:[redacted]@git.example/a"),
        (f"https://{CANARY}:@api.example", "https://[redacted]:[redacted]@api.example"),
        (f"host=db password={CANARY} user=ann", "host=db password=[redacted] user=ann"),
        (f"host=db password='a {CANARY}' user=ann", "host=db password='[redacted]' user=ann"),
        (f"password='it\\'s {CANARY}' x", "password='[redacted]' x"),
        (f'{{"api_key": "{CANARY}", "n": 1}}', '{"api_key": "[redacted]", "n": 1}'),
        (f'{{"apiKey":"{CANARY}"}}', '{"apiKey":"[redacted]"}'),
        (f"client_secret: {CANARY}", "client_secret: [redacted]"),
        (f"AWS_SECRET_ACCESS_KEY={CANARY}", "AWS_SECRET_ACCESS_KEY=[redacted]"),
        (f"X-Fq-Auth: {CANARY}", "X-Fq-Auth: [redacted]"),
        (f"SESSDATA={CANARY}; other", "SESSDATA=[redacted] other"),
        (f".bili.example\tTRUE\tSESSDATA\t{CANARY}", ".bili.example\tTRUE\tSESSDATA\t[redacted]"),
        (f"token == {CANARY}", "token == [redacted]"),
        (f"token: Bearer {CANARY}", "token: [redacted] [redacted]"),
        (f"GET /a?key={CANARY}&b=1", "GET /a?key=[redacted]&b=1"),
        (f"/a?b=1&access_token={CANARY} HTTP/1.1", "/a?b=1&access_token=[redacted] HTTP/1.1"),
        (f"https://a/b?X-Amz-Signature={CANARY}&c=d", "https://a/b?X-Amz-Signature=[redacted]&c=d"),
        (f"https://a/b?c=d&sig={CANARY}#e", "https://a/b?c=d&sig=[redacted]#e"),
        (f"before {PEM} after", "before [redacted] after"),
        (PEM[:60], "[redacted]"),
    ],
)  # fmt: skip
def test_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job 17 of type download waits at upstream example.org",
        "GET /api/jobs?state=failed&page=2 HTTP/1.1",
        "max_tokens=100, and 5 tokens were used",
        "no token was shown; send one as a bearer token",
        'WWW-Authenticate: Bearer realm="headway"',
        "basic authentication is not known here",
        "ssh://git@host/a and http://host:8000/@ann/b",
        "mail ann@example.org about key 12 and hw_test",
        "task-0123456789abcdef and sk-SK",
        "eyJ is how a JWT begins",
        "日本語 ünïcödé \ud800 \x00",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "shape",
    [
        json.dumps,
        lambda fields: json.dumps(json.dumps(fields)),
        lambda fields: json.dumps(json.dumps(json.dumps(fields))),
        repr,
        lambda fields: repr(list(fields.items())),
        lambda fields: repr([(k.encode(), v.encode()) for k, v in fields.items()]),
        lambda fields: "\n".join(f"{k}: {v}" for k, v in fields.items()),
        lambda fields: "&".join(f"{k}={v}" for k, v in fields.items()),
    ],
)
@pytest.mark.parametrize(
    "name", ["token", "Authorization", "set-cookie", "PASSWORD", "x-api-key", "x-fq-auth"]
)
def test_a_named_secret_is_hidden_however_it_is_written(name: str, shape: Any) -> None:
    hidden = redact(shape({"lane": "quick", name: CANARY, "n": "5"}))

    assert CANARY not in hidden
    assert MASK in hidden
    assert "quick" in hidden


# --- secrets of this process


def test_a_known_secret_is_hidden_wherever_it_appears(known: Secrets) -> None:
    secret = 'tr0ub4dor & "3"\u00e9'
    assert known.add(secret)

    for text in (secret, json.dumps(secret), repr(secret), "a=tr0ub4dor+%26+%223%22%C3%A9",
                 "tr0ub4dor%20%26%20%223%22%C3%A9", f"password={secret} and more"):  # fmt: skip
        assert "tr0ub4dor" not in redact(text)
        assert "3" not in redact(text)
    known.discard(secret)
    assert redact(secret) == secret


def test_one_secret_may_begin_another(known: Secrets) -> None:
    known.add("correct horse")
    known.add("correct horse battery")

    assert redact("it is correct horse battery.") == "it is [redacted]."


@pytest.mark.parametrize("secret", ["", "abc", "redacted", "[redacted]"])
def test_what_would_tear_every_text_apart_is_refused(known: Secrets, secret: str) -> None:
    assert not known.add(secret)
    assert redact(f"abc {secret}") == f"abc {secret}"


# --- always

fragments = st.sampled_from(
    ["token", "password", "key", "Bearer ", "basic ", "Cookie", "authorization", "://", "a:b@c",
     "hw_", "hw_a1_", "eyJab", ".", "sk-", "=", ":", " ", "\t", "\n", "'", '"', "\\", "?", "&", ",",
     "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "0123456789", "Zz", MASK, "[", "]",
     "b'", "%3d", "sig=", "known-secret", "redacted]known"]
)  # fmt: skip
texts = st.lists(fragments | st.text(max_size=4), max_size=14).map("".join)


@given(texts)
def test_redaction_is_idempotent(text: str) -> None:
    for secret in ("known-secret", "redacted]known", "token="):
        SECRETS.add(secret)
    try:
        hidden = redact(text)
        assert redact(hidden) == hidden
        assert "known-secret" not in hidden
        assert "known-secret" not in redact_query(text)
    finally:
        for secret in ("known-secret", "redacted]known", "token="):
            SECRETS.discard(secret)


def test_a_text_that_never_settles_is_hidden_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_hide_once", lambda text: text + "!")

    assert redact("abcdef") == MASK


def test_a_rule_that_fails_hides_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr(redaction, "_hide_once", broken)

    assert redact("abcdef") == MASK
    assert redact_query("abcdef") == MASK


HOSTILE = [
    "a", "eyJ", "eyJ.", "eyJa.b", "eyJ-eyJ_", "hw_", "hw_a_", "sk-", "-sk-", "://", "://a:", "a@",
    "://a:b@", "password=", "password='", 'password="\\', 'token=\\"', "token ", "token\t",
    "token:=", "Bearer ", "bearer", "basic a", "Cookie:", 'cookie="', 'cookie\\"', "authorization",
    "?key=", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n-----END ",
    "\\", "[redacted]", "password='\n", "a://b:c@d?token=e&", " ", "token%3d", "known-secret",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_and_not_faster(piece: str, known: Secrets) -> None:
    known.add("known-secret")

    def cost_s(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        begun = process_time()
        redact(text)
        return process_time() - begun

    small_s = max(min(cost_s(1 << 14) for _ in range(3)), 0.0003)
    # 64 times as long. Were a rule quadratic, this would take 4,096 times as long.
    assert cost_s(1 << 20) < 640 * small_s


# --- addresses


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ""),
        ("state=failed&page=2", "state=failed&page=2"),
        (f"key={CANARY}&page=2", "key=[redacted]&page=2"),
        (f"to%6ben={CANARY}", "to%6ben=[redacted]"),
        (f"a=1&signature={CANARY}&pwd={CANARY}", "a=1&signature=[redacted]&pwd=[redacted]"),
        (f"next=https%3A%2F%2Fann%3A{CANARY}%40host", "next=[redacted]"),
        (f"token=hw_ab12cd_{CANARY}", "token=hw_ab12cd_[redacted]"),
        ("token=&key", "token=&key"),
        ("q=type%3Adownload+error%3Atimeout", "q=type%3Adownload+error%3Atimeout"),
    ],
)  # fmt: skip
def test_a_query_is_shown_without_its_secrets(query: str, shown: str) -> None:
    assert redact_query(query) == shown


# --- nested data


def test_nested_data_is_shown_without_its_secrets() -> None:
    given = {
        "url": f"https://ann:{CANARY}@host",
        "headers": [("Authorization", f"Bearer {CANARY}"), ("Host", "a"), [b"cookie", b"a=b"]],
        "nested": {"apiKey": CANARY, "access_key": [CANARY], "X-FQ-Auth": CANARY, "passwd": 12345},
        "token": f"hw_ab12cd_{CANARY}",
        "cookies": {"SESSDATA": CANARY},
        b"set-cookie": CANARY.encode(),
        "raw": f"password={CANARY}".encode(),
        "key": "feed:12",
        "tokens": 7,
        "secret": None,
        "has_password": True,
        "numbers": (1, 2.5, None),
    }

    assert redact_value(given) == {
        "url": "https://ann:[redacted]@host",
        "headers": [("Authorization", MASK), ("Host", "a"), [b"cookie", MASK]],
        "nested": {"apiKey": MASK, "access_key": MASK, "X-FQ-Auth": MASK, "passwd": MASK},
        "token": "hw_ab12cd_[redacted]",
        "cookies": MASK,
        b"set-cookie": MASK,
        "raw": b"password=[redacted]",
        "key": "feed:12",
        "tokens": 7,
        "secret": None,
        "has_password": True,
        "numbers": (1, 2.5, None),
    }
    assert given["nested"] == {  # what was given is not changed
        "apiKey": CANARY, "access_key": [CANARY], "X-FQ-Auth": CANARY, "passwd": 12345,
    }  # fmt: skip


def test_data_that_contains_itself_or_is_very_deep_has_an_end() -> None:
    endless: list[Any] = [1]
    endless += [endless, endless]
    deep: Any = CANARY
    wide: Any = [CANARY]
    for _ in range(2_000):
        deep = [deep]
        wide = [wide, wide]  # 2 ** 2000 of them, if each were looked at

    assert redact_value(endless) == [1, MASK, MASK]
    assert CANARY not in repr(redact_value(deep))
    assert isinstance(redact_value(wide), list)


def test_data_that_cannot_be_read_is_hidden() -> None:
    class Broken(dict[str, str]):
        def items(self) -> Any:
            raise RuntimeError("no")

    assert redact_value([Broken(a="b")]) == MASK


values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@given(values)
def test_redacting_data_is_idempotent(value: Any) -> None:
    hidden = redact_value(value)

    assert redact_value(hidden) == hidden
