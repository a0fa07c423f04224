"""Cookies in every form that people bring, and in the one that programs read; never in an error."""

from __future__ import annotations

import json
import os
import stat
import string
from http.cookiejar import MozillaCookieJar
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yt_dlp.cookies import YoutubeDLCookieJar  # type: ignore[import-untyped]

from headway.apps.media.accounts.cookie_file import CookieFile, sweep
from headway.apps.media.accounts.cookies import (
    MAX_COOKIES,
    Cookie,
    cookie_header,
    covers,
    expires_at,
    netscape_file,
    parse_cookies,
    plain_site,
    values,
)
from headway.errors import BadSettings
from headway.net.redaction import Secrets

SITE = "bilibili.com"
LINE = ".bilibili.com\tTRUE\t/\tTRUE\t1893456000\tSESSDATA\tc0ffee%2C42"
SESSION = Cookie(SITE, "SESSDATA", "c0ffee%2C42", "/", 1_893_456_000, secure=True)

# ---------------------------------------------------------------------- every form


@pytest.mark.parametrize(
    "text",
    [
        f"# Netscape HTTP Cookie File\n\n{LINE}\n",
        f"# HTTP Cookie File\r\n# made by an extension\r\n\r\n{LINE}\r\n",
        f"\ufeff# Netscape HTTP Cookie File\n{LINE}",
        LINE,
        f"\n\n{LINE}\n\n",
        LINE.removeprefix("."),  # the flag says it, too
        LINE.replace("TRUE", "FALSE", 1).replace("\tTRUE", "\ttrue"),  # and so does the dot
        f".other.example\tTRUE\t/\tFALSE\t0\ta\tb\n{LINE}",
    ],
)
def test_a_cookies_txt_with_or_without_its_header(text: str) -> None:
    assert parse_cookies(text, SITE) == (SESSION,)


def test_lines_that_are_for_http_only_are_no_comments() -> None:
    (found,) = parse_cookies(f"#HttpOnly_{LINE}", SITE)
    assert found.http_only
    assert netscape_file([found]).endswith(f"#HttpOnly_{LINE}\n")


def test_without_an_expiry_it_lasts_as_long_as_its_session() -> None:
    for none in ("0", "", "-1"):
        (found,) = parse_cookies(LINE.replace("1893456000", none), SITE)
        assert found.expires_at is None


@pytest.mark.parametrize("text", ["Cookie: a=b; c=d=e;", "a=b;c=d=e", "cookie:a=b; c=d=e\n"])
def test_a_header(text: str) -> None:
    assert parse_cookies(text, SITE) == (Cookie(SITE, "a", "b"), Cookie(SITE, "c", "d=e"))


def test_the_json_of_an_extension() -> None:
    rows = [
        {"domain": ".bilibili.com", "name": "SESSDATA", "value": "c0ffee%2C42", "path": "/",
         "secure": True, "httpOnly": True, "hostOnly": False, "session": False,
         "expirationDate": 1893456000.75, "sameSite": "no_restriction", "storeId": "0"},
        {"domain": "www.bilibili.com", "name": "theme", "value": "", "hostOnly": True,
         "session": True},
        {"domain": "tracker.example", "name": "id", "value": "x", "expires": -1},
    ]  # fmt: skip
    session, theme = parse_cookies(json.dumps(rows), SITE)
    assert session == Cookie(
        SITE, "SESSDATA", "c0ffee%2C42", "/", 1_893_456_000, secure=True, http_only=True
    )
    assert theme == Cookie("www.bilibili.com", "theme", "", subdomains=False)


def test_of_two_with_one_name_the_last_one_counts() -> None:
    (found,) = parse_cookies("a=old; a=new", SITE)
    assert found.value == "new"


# ---------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no cookie in this text"),
        ("# Netscape HTTP Cookie File\n", "no cookie in this text"),
        (LINE.replace("\t", " "), "line 1 has no tabs"),
        (f"{LINE}\n{LINE.replace(chr(9), '    ')}", "line 2 has no tabs"),
        (f"{LINE}\textra", "line 1 has 8 fields"),
        (LINE.replace("1893456000", "s3cr3t-value"), "line 1: its expiry"),
        (LINE.replace("SESSDATA", "s3cr3t value"), "line 1 has a name that no cookie can have"),
        (LINE.replace("SESSDATA", ""), "line 1 has no name"),
        (f"{LINE}s3cr3t-\x07value", r"line 1 \(SESSDATA\)"),
        (f"{LINE}s3cr3t-\u7ed3", r"line 1 \(SESSDATA\)"),
        (LINE.replace(".bilibili.com", "s3cr3t_value/"), r"line 1 \(SESSDATA\): its domain"),
        ("a=b; s3cr3t-value", "cookie 2 has no “=”"),
        ("a=b\nc=s3cr3t-value", "line 2: a Cookie header is one line"),
        ('[{"name": "a", "value": 7}]', "cookie 1: its domain, path, name and value"),
        ('[{"name": "a", "value": "s3cr3t-value', "no JSON array"),
        ('{"a": "s3cr3t-value"}', "no JSON array"),
        ("[" * 50_000, "no JSON array"),
        (LINE.replace("bilibili", "s3cr3t-value"), "none of the 1 cookies is for bilibili.com"),
        (LINE.replace("bilibili.com", "notbilibili.com"), "none of the 1 cookies"),
        ("a=" + "s3cr3t-value" * 6_000, "longer than 64 KiB"),
        (";".join(f"s{n}=s3cr3t-value" for n in range(MAX_COOKIES + 1)), "more than 300"),
    ],
)
def test_what_is_wrong_is_said_without_a_value(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        parse_cookies(text, SITE)
    assert "s3cr3t" not in str(error.value)


SECRET = st.text(st.characters(exclude_characters="=;"), min_size=6).map(
    lambda text: f"qqq{text}qqq"
)


@given(SECRET, st.sampled_from(["a={}; b", "{}", LINE + "{}", LINE + "\t{}", "[{}", '["{}"]',
                                '[{{"name": "a", "value": "{}", "domain": 1}}]',
                                "x\t{}", LINE.replace("1893456000", "{}")]))  # fmt: skip
def test_whatever_it_is_no_error_and_no_cookie_shows_a_value(secret: str, form: str) -> None:
    try:
        shown = repr(parse_cookies(form.format(secret), SITE))
    except ValueError as error:
        shown = f"{error} {error.__cause__!r} {error.__context__!r}"
    assert "qqq" not in shown


@pytest.mark.parametrize(
    "text",
    ["", "com", "https://a.example", "a b.example", "-a.example", "1.2", "a..example",
     "a.example:80", "a_b.example", "x" * 64 + ".de"],
)  # fmt: skip
def test_what_is_no_site(text: str) -> None:
    with pytest.raises(ValueError, match="no site"):
        plain_site(text)


def test_a_site_is_its_host_and_what_is_below() -> None:
    assert plain_site(" .BiliBili.com ") == SITE
    assert covers(SITE, SITE)
    assert covers(SITE, "www.bilibili.com")
    assert not covers(SITE, "notbilibili.com")
    assert not covers("www.bilibili.com", SITE)
    assert plain_site("127.0.0.1") == "127.0.0.1"
    assert not covers("0.0.1", "127.0.0.1")


# ---------------------------------------------------------------------- round trips

NAMES = st.text(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~", min_size=1, max_size=20)
VALUES = st.text("".join(chr(n) for n in range(0x20, 0x7F) if chr(n) != ";"), max_size=60).map(
    str.strip
)
COOKIES = st.lists(
    st.builds(
        Cookie,
        domain=st.sampled_from([SITE, "www.bilibili.com", "api.bilibili.com"]),
        name=NAMES,
        value=VALUES,
        path=st.sampled_from(["/", "/x", "/x/y"]),
        expires_at=st.none() | st.integers(1, 4_000_000_000),
        secure=st.booleans(),
        http_only=st.booleans(),
        subdomains=st.booleans(),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda each: (each.domain, each.subdomains, each.path, each.name),
)


@given(COOKIES)
def test_what_is_written_is_read_back_as_it_was(cookies: list[Cookie]) -> None:
    assert parse_cookies(netscape_file(cookies), SITE) == tuple(cookies)


@pytest.mark.parametrize("jar_of", [MozillaCookieJar, YoutubeDLCookieJar])
def test_programs_read_the_same(jar_of: type[MozillaCookieJar], tmp_path: Path) -> None:
    path = tmp_path / "cookies.txt"

    @given(COOKIES)
    def reads(cookies: list[Cookie]) -> None:
        path.write_text(netscape_file(cookies), encoding="utf-8")
        jar = jar_of(str(path))
        jar.load(ignore_discard=True, ignore_expires=True)
        found = {
            (each.domain, each.path, each.name, each.value, each.secure, each.expires, each.discard)
            for each in jar
        }
        assert found == {
            (
                f".{each.domain}" if each.subdomains else each.domain,
                each.path, each.name, each.value, each.secure, each.expires_at,
                each.expires_at is None,
            )
            for each in cookies
        }  # fmt: skip

    reads()


def test_one_that_ends_with_its_session_is_sent_by_yt_dlp(tmp_path: Path) -> None:
    path = tmp_path / "cookies.txt"
    path.write_text(netscape_file(parse_cookies("a=b", SITE)))
    jar = YoutubeDLCookieJar(str(path))
    jar.load()
    assert jar.get_cookie_header("https://www.bilibili.com/video/1") == "a=b"


def test_lesson_14_the_file_begins_with_the_line_that_programs_want() -> None:
    assert netscape_file([SESSION]).splitlines()[0] == "# Netscape HTTP Cookie File"


# ---------------------------------------------------------------------- what is sent where


def test_a_cookie_is_sent_where_a_browser_would_send_it() -> None:
    cookies = (
        Cookie(SITE, "all", "1"),
        Cookie(SITE, "own", "2", subdomains=False),
        Cookie("api.bilibili.com", "api", "3", path="/x"),
        Cookie(SITE, "tls", "4", secure=True),
        Cookie(SITE, "old", "5", expires_at=99),
    )
    assert cookie_header(cookies, "https://bilibili.com", 100.0) == "all=1; own=2; tls=4"
    assert cookie_header(cookies, "https://api.bilibili.com/x/y", 100.0) == "api=3; all=1; tls=4"
    assert cookie_header(cookies, "http://api.bilibili.com/xy", 100.0) == "all=1"
    assert cookie_header(cookies, "https://bilibili.com", 98.0).endswith("old=5")
    assert cookie_header(cookies, "https://evil.example/?bilibili.com", 100.0) == ""
    assert cookie_header(cookies, "https://notbilibili.com/", 100.0) == ""


# ---------------------------------------------------------------------- what is known of them


def test_the_login_of_a_known_site_ends_with_its_cookie() -> None:
    passing = Cookie(SITE, "bili_ticket", "x", expires_at=50)
    assert expires_at([SESSION, passing]) == 1_893_456_000.0
    assert expires_at([Cookie(SITE, "SESSDATA", "x"), passing]) is None


def test_of_others_it_ends_with_the_last_of_them() -> None:
    site = "video.example"
    early, late = Cookie(site, "a", "x", expires_at=50), Cookie(site, "b", "x", expires_at=90)
    assert expires_at([early, late]) == 90.0
    assert expires_at([early, late, Cookie(site, "c", "x")]) is None
    assert expires_at([]) is None


def test_values_are_hidden_and_words_are_not() -> None:
    cookies = parse_cookies("SESSDATA=c0ffee%2C42; lang=zh-CN; push=DISABLE; token=abcdefgh", SITE)
    secrets = Secrets()
    for value in values(cookies):
        assert secrets.add(value)
    said = secrets.hide("c0ffee%2C42 c0ffee,42 zh-CN DISABLE abcdefgh")
    assert said == "[redacted] [redacted] zh-CN DISABLE [redacted]"


# ---------------------------------------------------------------------- in a file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_read_the_file_and_it_goes(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with CookieFile(tmp_path / "private" / "here", [SESSION]) as path:
            assert mode(path) == 0o600
            assert mode(path.parent) == 0o700
            assert parse_cookies(path.read_text(), SITE) == (SESSION,)
    finally:
        os.umask(before)
    assert list((tmp_path / "private" / "here").iterdir()) == []


def test_it_goes_whatever_happens(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), CookieFile(tmp_path, [SESSION]):
        raise KeyboardInterrupt
    with CookieFile(tmp_path, [SESSION]) as path:
        path.unlink()  # somebody was faster
    broken: list[Cookie] = [None]  # type: ignore[list-item]
    with pytest.raises(AttributeError), CookieFile(tmp_path, broken):
        pass
    assert list(tmp_path.iterdir()) == []


def test_it_is_never_written_where_something_is_or_a_link_leads(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    file = CookieFile(tmp_path, [SESSION])
    file.path.symlink_to(kept)
    with pytest.raises(FileExistsError):
        file.__enter__()
    assert kept.read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(BadSettings, match="is a link"), CookieFile(tmp_path / "link", [SESSION]):
        pass


def test_a_directory_that_others_can_read_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with CookieFile(tmp_path, [SESSION]):
        assert mode(tmp_path) == 0o700


def test_what_a_killed_process_has_left_is_swept(tmp_path: Path) -> None:
    CookieFile(tmp_path, [SESSION]).__enter__()
    CookieFile(tmp_path, [SESSION]).__enter__()
    (tmp_path / "other.txt").write_text("not ours")
    assert sweep(tmp_path) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["other.txt"]
    assert sweep(tmp_path / "nowhere") == 0
