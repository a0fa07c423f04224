"""Redaction: secrets are taken out of all text that is written where people read it.

Patterns know what credentials look like; `SECRETS` knows those of this process that look like
nothing. What is hidden becomes "[redacted]". When in doubt more is hidden, never less. Each rule
takes time in proportion to the text: no rule looks at the same stretch of it again and again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

MASK = "[redacted]"
MAX_DEPTH = 50
MIN_SECRET = 6  # characters; hiding something shorter would tear every text apart
SHORTEST = 5  # characters of the shortest text in which a rule finds something: "pwd=x"
PASSES = 4  # a hidden secret may uncover a pattern around it, but not often


# ---------------------------------------------------------------------- secrets of this process


class Secrets:
    """Secrets that no pattern can know, such as a configured key. They are hidden wherever they
    appear, also as text in JSON, in an address or in Python's own notation.
    """

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}
        self._forms: tuple[str, ...] = ()  # replaced as a whole, so that readers need no lock
        self._lock = threading.Lock()

    def add(self, secret: str) -> bool:
        """False: it is too short to be hidden, so choose a longer one."""
        if len(secret) < MIN_SECRET or secret in MASK:
            return False
        forms = {
            secret,
            quote(secret, safe="", errors="replace"),
            quote_plus(secret, errors="replace"),
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
        }
        with self._lock:
            self._known[secret] = frozenset(forms)
            self._sort()
        return True

    def discard(self, secret: str) -> None:
        with self._lock:
            self._known.pop(secret, None)
            self._sort()

    def _sort(self) -> None:
        # The longest first: one secret may be the beginning of another.
        every = {form for forms in self._known.values() for form in forms}
        self._forms = tuple(sorted(every, key=lambda form: (-len(form), form)))

    def hide(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text


SECRETS = Secrets()


# ---------------------------------------------------------------------- what credentials look like

Hide = Callable[[str], str]

# The names under which something secret stands. Any of them may end a longer name.
_NAMES = (
    r"token|passw(?:or)?ds?|passphrase|pwd|secret(?:s|[_-]?key)?|credentials?|signature"
    r"|(?:api|access|private|shared|account)[_-]?keys?|sessdata|bili_jct|fq[_-]auth"
)
_SECRET_NAME = re.compile(rf"(?:{_NAMES}|authorization|cookies?)\Z", re.I | re.A)
_QUERY_NAMES = frozenset({"auth", "key", "sig"})  # secret in an address only

_QUOTED = r"""\\{0,7}"(?:[^"\\\n]|\\.)++|\\{0,7}'(?:[^'\\\n]|\\.)++"""
_EQUALS = (
    r"""(?:\\{0,7}["'][ \t]{0,8}[:=,]|(?:[ \t]{0,8}(?:[:=]|%3[ad])|\t){1,3})[ \t]{0,8}"""
    r"""(?:b(?=["']))?"""
)
_OPENER = re.compile(r"""\\*["']|""")
_OWN = re.compile(r"hw_([A-Za-z0-9]{1,64})_(?:[A-Za-z0-9_-]{8,}|\[redacted\])")


def _hidden(value: str) -> str:
    """Of our own tokens the id stays: it says which one it was, and opens nothing."""
    own = _OWN.search(value)
    return MASK if own is None else f"hw_{own[1]}_{MASK}"


def _after_its_name(pattern: str, flags: int = 0) -> Hide:
    """Keep group 1, hide group 2."""
    compiled = re.compile(pattern, re.A | flags)

    def replaced(found: re.Match[str]) -> str:
        name, value = found.group(1, 2)
        opener = _OPENER.match(value)
        return name + (opener[0] if opener else "") + _hidden(value)

    return lambda text: compiled.sub(replaced, text)


_PRIVATE_KEY = re.compile(
    # Without its end, all that follows may belong to it.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.S,
)
_API_KEY = re.compile(
    r"(?<![A-Za-z0-9])(sk-|[sr]k_(?:live|test)_|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza)"
    r"[A-Za-z0-9_-]{8,}"
)
# Three parts, or five when it is encrypted; the last, or the second of five, may be empty.
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]*+((?:\.+[A-Za-z0-9_-]++){2,}+|\.[A-Za-z0-9_-]++\.)?")
# Neither part reaches over a slash, so no stretch is looked at for two addresses.
_USER_INFO = re.compile(r'://([^\s/?#:@"<>]*+)(:?)([^\s/?#"<>]*)@')
_LONG_NAME = 20  # a user name of this length is a token


def _hide_jwts(text: str) -> str:
    """A loop, since a pattern alone would search "eyJeyJeyJ…" once for each of its beginnings."""
    kept: list[str] = []
    done, at = 0, text.find("eyJ")
    while at >= 0:
        found = _JWT.match(text, at)
        assert found is not None
        if found[1]:
            kept += (text[done:at], MASK)
            done = found.end()
        at = text.find("eyJ", found.end())
    return "".join((*kept, text[done:])) if kept else text


def _hide_user_info(found: re.Match[str]) -> str:
    user, colon, password = found.group(1, 2, 3)
    if not colon and not password and len(user) < _LONG_NAME:
        return found[0]  # only a name, as in ssh://git@host
    if len(user) >= _LONG_NAME or not password:
        user = MASK
    return f"://{user}:{MASK}@"


# What a lower-case text must contain for a rule to be worth trying, and the rule. Those that reach
# over white space come first, so that no other leaves a part of their secret behind.
_RULES: tuple[tuple[tuple[str, ...], Hide], ...] = (
    (("-----begin ",), lambda text: _PRIVATE_KEY.sub(MASK, text)),
    (
        ("authorization", "cookie"),
        _after_its_name(rf"((?:authorization|cookie2?){_EQUALS})({_QUOTED}|[^\r\n]+)", re.I),
    ),
    (
        ("bearer",),
        _after_its_name(
            r"(bearer(?:[ \t:=+]|%20){1,8})"
            r"(?!(?:tokens?|auth|authentication|authori[sz]ation|credentials?|realm|scheme)\b)"
            r"([A-Za-z0-9._~+/=\[\]-]{4,})",
            re.I,
        ),
    ),
    (
        ("basic",),  # also a word, so what follows must look like base64
        _after_its_name(
            r"((?i:basic)(?:[ \t:=+]|%20){1,8})(?=[a-z+/]*+[A-Z0-9=])([A-Za-z0-9+/=_-]{4,})"
        ),
    ),
    (
        ("token", "passw", "passph", "pwd", "secret", "credential", "signature", "key", "sessdata",
         "bili_jct", "auth"),
        _after_its_name(rf'((?:{_NAMES}){_EQUALS})({_QUOTED}|[^\s&"<>]+)', re.I),
    ),
    (
        ("key=", "sig=", "auth="),
        _after_its_name(r"""([?&;](?:auth|key|sig)=)([^\s&"'<>#]+)""", re.I),
    ),
    (("://",), lambda text: _USER_INFO.sub(_hide_user_info, text)),
    (("eyj",), _hide_jwts),
    (
        ("sk-", "k_live_", "k_test_", "gh", "glpat-", "xox", "akia", "aiza"),
        lambda text: _API_KEY.sub(rf"\g<1>{MASK}", text),
    ),
    (("hw_",), lambda text: _OWN.sub(rf"hw_\g<1>_{MASK}", text)),
)  # fmt: skip
_MARKERS = tuple(dict.fromkeys(marker for markers, _ in _RULES for marker in markers))


# ---------------------------------------------------------------------- the way in


def redact(text: str) -> str:
    """The text without what is secret in it. What was redacted before stays as it is."""
    if len(text) < SHORTEST:
        return text
    try:
        for _ in range(PASSES):
            hidden = _hide_once(text)
            if hidden == text:
                return text
            text = hidden
    except Exception:  # a log line must never be the reason why something fails
        return MASK
    return MASK  # it does not settle, so that nobody can say what is left in it


def _hide_once(text: str) -> str:
    text = SECRETS.hide(text)
    lowered = text.lower()
    for marker in _MARKERS:
        if marker in lowered:
            break
    else:
        return text
    for markers, hide in _RULES:
        for marker in markers:
            if marker in lowered:
                text = hide(text)
                break
    return text


def redact_query(query: str) -> str:
    """The part of an address after its question mark, of which also encoded names are read."""
    if not query:
        return query
    try:
        return "&".join(_redacted_pair(pair) for pair in query.split("&"))
    except Exception:
        return MASK


def _redacted_pair(pair: str) -> str:
    name, equals, value = pair.partition("=")
    read = unquote_plus(name).strip().lower()
    if value and (read in _QUERY_NAMES or is_secret_name(read)):
        return f"{redact(name)}={_hidden(value)}"
    if "%" in value or "+" in value:
        meant = unquote_plus(value)
        if redact(meant) != meant:
            return f"{redact(name)}={MASK}"
    return redact(name + equals + value)


@lru_cache(maxsize=1_024)  # names are few and come again and again
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name in an object or a header is secret."""
    return _SECRET_NAME.search(name) is not None


def redact_value(value: Any) -> Any:
    """The same for nested data. Keys that name a secret hide what they lead to, and so do the
    first of two in a list of headers. Objects that are no plain data are given back as they are.
    """
    try:
        return _redacted(value, {}, 0)
    except Exception:
        return MASK


def _redacted(value: Any, seen: dict[int, tuple[Any, Any]], depth: int) -> Any:
    match value:
        case str():
            return redact(value)
        case bytes() | bytearray():
            text = bytes(value).decode("utf-8", "replace")
            hidden = redact(text)
            return value if hidden == text else hidden.encode("utf-8", "replace")
        case dict() | list() | tuple() | set() | frozenset():
            pass
        case _:
            return value
    known = seen.get(id(value))
    if known is not None:  # what contains itself, or is there twice
        return known[1]
    if depth >= MAX_DEPTH:
        return MASK
    seen[id(value)] = (value, MASK)  # with the value, so that no other gets its id meanwhile
    made = _redacted_inside(value, seen, depth + 1)
    seen[id(value)] = (value, made)
    return made


def _redacted_inside(value: Any, seen: dict[int, tuple[Any, Any]], depth: int) -> Any:
    if isinstance(value, dict):
        return {
            _redacted(name, seen, depth): _under(name, each, seen, depth)
            for name, each in value.items()
        }
    if isinstance(value, set | frozenset):
        return {_redacted(each, seen, depth) for each in value}
    if len(value) == 2 and isinstance(value[0], str | bytes):
        items = [_redacted(value[0], seen, depth), _under(value[0], value[1], seen, depth)]
    else:
        items = [_redacted(each, seen, depth) for each in value]
    return tuple(items) if isinstance(value, tuple) else items


def _under(name: Any, value: Any, seen: dict[int, tuple[Any, Any]], depth: int) -> Any:
    if isinstance(name, bytes):
        name = name.decode("latin-1")
    if value is None or isinstance(value, bool) or not isinstance(name, str):
        return _redacted(value, seen, depth)
    if not is_secret_name(name):
        return _redacted(value, seen, depth)
    return _hidden(value) if isinstance(value, str) else MASK
