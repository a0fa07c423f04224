"""Cookies as people bring them, and as programs read them. Nothing here touches a file or a clock.

A cookie is a secret: no error quotes a value, and none is shown when a cookie is printed. What is
wrong is said with the number of a line and the name of a cookie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from headway.net.redaction import MIN_SECRET, is_secret_name

MAX_TEXT_BYTES = 65_536
MAX_COOKIES = 300
MAX_NAME = 256  # characters
MAX_VALUE = 8_192
MAX_PATH = 1_024
FAR_AT = 253_402_300_799  # the last second of the year 9999, which every program can read
HEADER = "# Netscape HTTP Cookie File"  # without this line programs refuse the whole file
HTTP_ONLY = "#HttpOnly_"
FIELDS = 7  # of a line: domain, subdomains, path, secure, expiry, name, value
PLAIN_WORD = 12  # letters; a word shorter than this is a setting, such as "desktop"

# Of some sites it is known which cookie is the login. Others come and go by the hour.
LOGINS = {"bilibili.com": ("SESSDATA",)}

_SITE = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.A)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.A)
_NAME = re.compile(r"[!#-+\--:<>-\[\]-~]+", re.A)  # printable, and none of  " , ; = \ and space
_VALUE = re.compile(r"[ -:<-~]*", re.A)  # printable, without the semicolon
_PATH = re.compile(r"/[!-:<-~]*", re.A)
_EXPIRY = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?", re.A)
_SPACED = re.compile(r"\S+ +(?:TRUE|FALSE) +/\S* +(?:TRUE|FALSE) +-?\d* +\S+", re.I | re.A)
_WORD = re.compile(r"[A-Za-z_-]+", re.A)


@dataclass(frozen=True, slots=True)
class Cookie:
    domain: str  # in small letters, without a dot before it
    name: str
    value: str = field(repr=False)
    path: str = "/"
    expires_at: int | None = None  # None: when the browser is closed, so not by itself
    secure: bool = False
    http_only: bool = False
    subdomains: bool = True  # it is also for hosts below its domain


class NoCookies(ValueError):
    """There is nothing in this text for the site; the message says what there was instead."""


# ---------------------------------------------------------------------- sites


def plain_site(text: str) -> str:
    """The name of a site: a host without anything else. ValueError: it is none."""
    site = text.strip().lower().strip(".")
    numbers = _ADDRESS.fullmatch(site) is not None
    named = _SITE.fullmatch(site) and len(site) <= 253 and not site.split(".")[-1].isdecimal()
    if not (numbers or named) or ("." not in site and site != "localhost"):
        raise ValueError("this is no site; write the name of its host, such as bilibili.com")
    return site


def covers(site: str, host: str) -> bool:
    """Whether a host is the site, or below it."""
    if host == site:
        return True
    return host.endswith(f".{site}") and not _ADDRESS.fullmatch(host)


# ---------------------------------------------------------------------- reading


def parse_cookies(text: str, site: str) -> tuple[Cookie, ...]:
    """The cookies for a site in what somebody has pasted: a cookies.txt, a Cookie header, or the
    JSON of a browser extension. ValueError says what is wrong with it. Cookies of other sites are
    left out; of two with one name the last one counts.
    """
    found = read_cookies(text, site)
    kept = {
        (each.domain, each.subdomains, each.path, each.name): each
        for each in found
        if covers(site, each.domain)
    }
    if kept:
        return tuple(kept.values())
    if found:
        raise NoCookies(
            f"none of the {len(found)} cookies is for {site}; export those of {site} itself"
        )
    raise NoCookies("there is no cookie in this text; export them from a browser that is logged in")


def read_cookies(text: str, site: str) -> list[Cookie]:
    """All of them, those of other sites too."""
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise ValueError(
            f"this is longer than {MAX_TEXT_BYTES // 1024} KiB; export the cookies of {site} only"
        )
    found: list[Cookie] = []
    for cookie in _reader(text)(text, site):
        found.append(cookie)
        if len(found) > MAX_COOKIES:
            raise ValueError(
                f"these are more than {MAX_COOKIES} cookies; export those of {site} only"
            )
    return found


def _reader(text: str) -> Callable[[str, str], Iterator[Cookie]]:
    if text.lstrip()[:1] in ("[", "{"):
        return _of_json
    lines = _lines(text)
    if any(line.startswith("#") or "\t" in line or _SPACED.match(line) for _, line in lines):
        return _of_netscape
    return _of_header


def _lines(text: str) -> list[tuple[int, str]]:
    """Those that say something, and their numbers. Only what ends a line in such a file does."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [(number, row) for number, row in enumerate(rows, start=1) if row.strip()]


def _of_netscape(text: str, _site: str) -> Iterator[Cookie]:
    for number, row in _lines(text):
        http_only = row.startswith(HTTP_ONLY)
        line = row.removeprefix(HTTP_ONLY)
        if line.startswith("#"):
            continue
        where = f"line {number}"
        fields = line.split("\t")
        if len(fields) == FIELDS - 1:
            fields.append("")  # a value of nothing, whose tab an editor has taken away
        if len(fields) != FIELDS:
            if "\t" not in line:
                raise ValueError(
                    f"{where} has no tabs between its fields; they became spaces when it was "
                    "copied, so upload the file as it was exported"
                )
            raise ValueError(
                f"{where} has {len(fields)} fields and not {FIELDS}; export the file again"
            )
        domain, subdomains, path, secure, expiry, name, value = (each.strip() for each in fields)
        if expiry and not _EXPIRY.fullmatch(expiry):
            raise ValueError(f"{where}: its expiry is no number of seconds; export the file again")
        yield _cookie(
            where, domain, name, value, path, float(expiry or 0), secure.upper() == "TRUE",
            http_only, subdomains.upper() == "TRUE" or domain.startswith("."),
        )  # fmt: skip


def _of_header(text: str, site: str) -> Iterator[Cookie]:
    lines = _lines(text)
    if len(lines) > 1:
        raise ValueError(
            f"line {lines[1][0]}: a Cookie header is one line, and a cookies.txt has tabs; "
            "paste one of them"
        )
    for _, line in lines:
        plain = re.sub(r"\A\s*cookie\s*:", "", line, flags=re.I)
        for number, piece in enumerate(plain.split(";"), start=1):
            if not piece.strip():
                continue
            name, equals, value = piece.strip().partition("=")
            where = f"cookie {number}"
            if not equals:
                raise ValueError(f"{where} has no “=”; write them as name=value; name=value")
            name, value = name.strip(), value.strip()
            secure = name.startswith(("__Secure-", "__Host-"))
            below = not _ADDRESS.fullmatch(site)
            yield _cookie(where, site, name, value, "/", 0.0, secure, False, below)


def _of_json(text: str, site: str) -> Iterator[Cookie]:
    try:
        rows = msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("this is no JSON array of cookies; export them again")
    for number, row in enumerate(rows, start=1):
        yield _of_object(f"cookie {number}", row, site)


def _of_object(where: str, row: dict[str, Any], site: str) -> Cookie:
    domain, path = row.get("domain") or site, row.get("path") or "/"
    name, value = row.get("name"), row.get("value")
    if not all(isinstance(each, str) for each in (domain, path, name, value)):
        raise ValueError(f"{where}: its domain, path, name and value must be texts")
    expiry = row.get("expirationDate", row.get("expires"))
    if row.get("session") is True or not isinstance(expiry, int | float):
        expiry = 0.0
    below = row.get("hostOnly") is False or str(domain).startswith(".")
    return _cookie(
        where, str(domain), str(name).strip(), str(value).strip(), str(path), float(expiry),
        row.get("secure") is True, row.get("httpOnly") is True, below,
    )  # fmt: skip


def _cookie(
    where: str, domain: str, name: str, value: str, path: str, expiry: float, secure: bool,
    http_only: bool, subdomains: bool,
) -> Cookie:  # fmt: skip
    """What is fit to be sent, and nothing else."""
    if not name:
        raise ValueError(f"{where} has no name; take it out")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise ValueError(f"{where} has a name that no cookie can have; take it out")
    if len(value) > MAX_VALUE or not _VALUE.fullmatch(value):
        raise ValueError(
            f"{where} ({name}): its value has characters that cannot be sent, or more than "
            f"{MAX_VALUE}; take it out, or copy it again"
        )
    host = domain.strip().lower().strip(".")
    if not _SITE.fullmatch(host):
        raise ValueError(f"{where} ({name}): its domain is no name of a host")
    if len(path) > MAX_PATH or not _PATH.fullmatch(path):
        path = "/"  # what a browser makes of it
    expires_at = min(int(expiry), FAR_AT) if 0 < expiry < float("inf") else None
    return Cookie(host, name, value, path, expires_at or None, secure, http_only, subdomains)


# ---------------------------------------------------------------------- writing


def netscape_file(cookies: Iterable[Cookie]) -> str:
    """As yt-dlp and Python read it. One that ends with its session has no expiry at all: 0 would
    be long ago for some.
    """
    lines = [HEADER, ""]
    for each in cookies:
        # A dot before the domain and the flag after it must say the same, or all of it is refused.
        domain = f".{each.domain}" if each.subdomains else each.domain
        expiry = "" if each.expires_at is None else str(each.expires_at)
        lines.append(
            (HTTP_ONLY if each.http_only else "")
            + "\t".join(
                (domain, _flag(each.subdomains), each.path, _flag(each.secure), expiry, each.name,
                 each.value)
            )
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _flag(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def cookie_header(cookies: Iterable[Cookie], url: str, now: float) -> str:
    """What a browser would send to this address; empty: nothing."""
    place = urlsplit(url)
    host, path = (place.hostname or "").lower(), place.path or "/"
    sent = [
        each
        for each in cookies
        if (each.domain == host or (each.subdomains and covers(each.domain, host)))
        and _is_within(path, each.path)
        and (place.scheme == "https" or not each.secure)
        and (each.expires_at is None or each.expires_at > now)
    ]
    sent.sort(key=lambda each: -len(each.path))
    return "; ".join(f"{each.name}={each.value}" for each in sent)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# ---------------------------------------------------------------------- what is known of them


def expires_at(cookies: Iterable[Cookie]) -> float | None:
    """When the login ends by itself, as far as its cookies say. Where nobody knows which cookie is
    the login, it is over when all of them are: many last for minutes and matter to nobody.
    """
    every = list(cookies)
    known = [each for each in every if _is_login(each)]
    if known:
        times = [each.expires_at for each in known if each.expires_at is not None]
        return float(min(times)) if times else None
    ends = [each.expires_at for each in every]
    told = [end for end in ends if end is not None]
    return float(max(told)) if told and len(told) == len(ends) else None


def _is_login(cookie: Cookie) -> bool:
    return any(
        cookie.name in names and covers(site, cookie.domain) for site, names in LOGINS.items()
    )


def values(cookies: Iterable[Cookie]) -> tuple[str, ...]:
    """What must not be seen in any text. Short ones and plain words, such as the language, are
    left out: hiding them would tear every text apart, and they open nothing.
    """
    found: dict[str, None] = {}
    for each in cookies:
        for value in (each.value, unquote(each.value)):
            is_plain = _WORD.fullmatch(value) is not None and len(value) < PLAIN_WORD
            if len(value) >= MIN_SECRET and not (is_plain and not is_secret_name(each.name)):
                found[value] = None
    return tuple(found)
