"""No word of a client or of a site becomes an option, a command or a program."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from tests.contract.kit import JSON
from tests.contract.media_kit import SUBSCRIPTIONS, Desk, media_desk, settled
from tests.hands.kit import eventually
from tests.security.kit import send
from tests.servers import Server

OWNED = "owned-by-somebody"  # a file that nobody makes
LONG_S = 60.0
LOCAL = "file" + ":///etc/passwd"
COOKIE = "0123456789-canary-of-this-cookie"

NO_ADDRESSES = [
    f"--exec=touch {OWNED}", f"-o/tmp/{OWNED}", f";touch {OWNED}", f"$(touch {OWNED})",
    f"`touch {OWNED}`", f"|touch {OWNED}", "-", "--", "", " ", "@/etc/passwd", "/etc/passwd",
    LOCAL, LOCAL.upper(), "ytsearch:cats", "ytsearch5:cats", "ytuser:x",
    ":ytfav", "ftp://files.example/x", "data:text/html,x", "javascript:alert(1)", "%(title)s",
    "http://", "https:///x", "http://[::1", "http://a.example:99999/", "http://a.example\\@b/",
    "http:a.example", "//a.example/x",
]  # fmt: skip
BROKEN_LINES = [
    f"https://a.example/\n--exec=touch {OWNED}", f"https://a.example/\r\n-o {OWNED}",
    "https://a.example/\0", "https://a.example/\x1b[2J",
    f"https://a.example/{'x' * 20_000}",
]  # fmt: skip
TEMPLATES = [
    "%(title)s", "%(exec)s", "{title.__class__}", "{title!r}", "{title:>99999999}", "{0}",
    "{title", "title}", "{{title}}", "{exec}/{title}", "../{title}", "/{title}", "a/../{title}",
    "{title}/..", "{title}\0", "{title}\n", "~/{title}/.", ".{title}", "{title}//x", "C:\\{title}",
    "{title}" * 200, "{index:0999999999}/{title}", "{title:%(x)s}",
]  # fmt: skip
QUALITIES = ["best;touch", "-f best", "bv*+ba", "best[height<=?720]", "../1080p", "", "1080", 720]
FILTERS: list[Any] = [
    {"exec": "x"}, {"title_any": "x"}, {"title_any": [["x"]]}, {"min_duration_s": "1;x"},
    {"min_views": 1e400}, {"after": "yesterday; touch"}, {"title_any": ["x" * 100_000]}, "x", [1],
]  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with media_desk(log_level="debug") as desk:
        desk.keeper().post(
            "/api/archive/accounts",
            {"name": "a", "site": "127.0.0.1", "cookies": f"SESSDATA={COOKIE}", "check_url": ""},
            201,
        )
        yield desk
        assert not made_anywhere(desk.server)


def made_anywhere(server: Server) -> list[Path]:
    places = [server.log.parent, Path(tempfile.gettempdir()), Path.cwd(), Path.home(), Path("/")]
    found = [each for each in server.log.parent.rglob("*") if each.name == OWNED]
    return found + [place / OWNED for place in places if (place / OWNED).exists()]


def ways(url: Any) -> list[tuple[str, JSON]]:
    """All that take an address."""
    return [
        (SUBSCRIPTIONS, {"url": url}),
        (f"{SUBSCRIPTIONS}/parse-collection", {"url": url}),
        ("/api/requests/enqueue", {"type": "parse", "url": url, "requires_cookie": False}),
        ("/api/requests/enqueue", {"type": "download", "url": url, "requires_cookie": True}),
    ]


@pytest.mark.parametrize("url", [*NO_ADDRESSES, *BROKEN_LINES], ids=lambda url: repr(url)[:40])
def test_what_is_no_address_is_refused(desk: Desk, url: str) -> None:
    eve = desk.archivist()
    for path, body in ways(url):
        answer = eve.http.post(path, json=body)
        assert answer.status_code == 422, (path, answer.text)
        assert len(answer.text) < 3_000
    assert eve.get("/api/requests")["total"] == 0
    assert eve.get(SUBSCRIPTIONS)["items"] == []


@pytest.mark.parametrize("url", [None, 5, ["https://a.example/"], {"$ne": ""}, True], ids=repr)
def test_nor_is_anything_but_text(desk: Desk, url: Any) -> None:
    eve = desk.archivist()
    for path, body in ways(url):
        assert eve.http.post(path, json=body).status_code == 422


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda text: repr(text)[:40])
def test_templates_have_a_small_language_of_their_own(desk: Desk, template: str) -> None:
    eve = desk.archivist()
    body = {"url": "https://a.example/list", "template": template, "start": False}
    assert eve.http.post(SUBSCRIPTIONS, json=body).status_code == 422
    made = eve.add(start=False)
    answer = eve.http.patch(f"{SUBSCRIPTIONS}/{made['id']}", json={"template": template})
    assert answer.status_code == 422
    assert eve.subscription(made["id"])["template"] == made["template"]


@pytest.mark.parametrize("field", ["quality", "filters", "nfo", "depth", "interval_s"])
def test_choices_are_taken_from_those_that_there_are(desk: Desk, field: str) -> None:
    eve = desk.archivist()
    wrong: dict[str, list[Any]] = {
        "quality": QUALITIES, "filters": FILTERS, "nfo": ["x", "../movie", 1, None],
        "depth": ["1;x", -1, 1e99, True, [1]],
        "interval_s": ["1 hour", -1, 1, 1e99, "NaN", True, [600]],
    }  # fmt: skip
    for value in wrong[field]:
        body = json.dumps({"url": "https://a.example/list", field: value})
        headers = {"content-type": "application/json"}
        answer = eve.http.post(SUBSCRIPTIONS, content=body, headers=headers)
        assert answer.status_code == 422, (value, answer.text)
    assert eve.get(SUBSCRIPTIONS)["items"] == []


def test_ids_are_numbers(desk: Desk) -> None:
    eve = desk.archivist()
    for id in (f"1;touch {OWNED}", "--exec", "$(id)", "../1", "1/../2", "0", "-1", "9" * 30, "1.0",
               "٣", "1 or 1=1", "'", "%00", "1%0a"):  # fmt: skip
        for path in (f"{SUBSCRIPTIONS}/{{}}", f"{SUBSCRIPTIONS}/{{}}/items",
                     "/api/archive/items/{}", "/api/archive/items/{}/file"):  # fmt: skip
            at = path.format(id if "%" in id else quote(id, safe=""))
            answer = send(
                desk.server.url, "GET", at, authorization=eve.http.headers["authorization"]
            )
            assert answer.status in (400, 404, 422), (at, answer.body)


ODD: list[JSON] = [
    {"url": ["--exec", "x"]}, {"url": {"a": 1}}, {"url": f"--exec=touch {OWNED}"}, {"url": None},
    {"url": LOCAL}, {"url": "ytsearch:x"}, {"url": 5}, {},
    {"url": "https://a.example/", "directory": "/tmp"},
    {"url": "https://a.example/", "extractor_args": {"generic": {"impersonate": ["x"]}}},
    {"url": "https://a.example/", "cookie_file": "/etc/passwd"},
    {"url": "https://a.example/", "ua_profile": "x\r\nCookie: a=b"},
    {"url": "https://a.example/", "subscription_id": "1; drop table media_items"},
    {"url": "https://a.example/", "subscription_id": 1e300},
    {"url": "https://a.example/", "item": -1}, {"url": "https://a.example/", "item": "x"},
    {"url": "https://a.example/", "item": 10**30},
]  # fmt: skip


def test_jobs_with_odd_arguments_end_without_a_program(desk: Desk) -> None:
    """Whoever puts a job by hand says to its handler what he likes."""
    eve = desk.archivist("", "read", "submit", "operate")
    own = eve.add(start=False, paused=False)
    made = []
    for type in ("parse", "download", "expected_total", "list_fetch"):
        for args in [*ODD, {"subscription_id": own["id"], "start": -5},
                     {"subscription_id": own["id"], "start": "x"},
                     {"subscription_id": own["id"], "mode": "../x", "start": 10**12}]:  # fmt: skip
            body = {"type": type, "args": args, "max_attempts": 1}
            answer = eve.http.post("/api/jobs", json=body)
            assert answer.status_code in (202, 422), answer.text
            if answer.status_code == 202:
                made.append(answer.json()["id"])
    assert len(made) > 30
    desk.keeper().post("/api/queue/resume", scope="all")
    seen = set()
    try:

        def over() -> bool:
            seen.update(each.pid for each in programs(desk))
            return all(eve.job(id)["finished_at"] for id in made)

        eventually(over, LONG_S)
    finally:
        desk.pause()
    assert {eve.job(id)["status"] for id in made} <= {"failed", "cancelled"}
    assert not seen
    assert not list((desk.server.data / "cookies").glob("*"))
    assert eve.get("/api/archive")["subscriptions"] == 1  # the engine is well


def programs(desk: Desk) -> list[psutil.Process]:
    server = psutil.Process(desk.server.pid)
    found = [each for each in server.children(recursive=True)
             if each.status() != psutil.STATUS_ZOMBIE]  # fmt: skip
    return [each for each in found if "boot.py" in " ".join(each.cmdline())]


@pytest.mark.timeout(180)
def test_the_program_is_told_everything_on_its_input(desk: Desk) -> None:
    """Its command line and its environment, which others on the machine may see, are always the
    same; and titles that look like commands are titles.
    """
    site, eve = desk.site, desk.archivist()
    evil = (
        f"--exec 'touch {OWNED}' $(touch {OWNED}) `touch {OWNED}` ; touch {OWNED} | %(id)s {{id}}"
    )
    name = f"--exec=touch {OWNED};$(touch {OWNED})"
    made = site.collection(name, count=0, title=evil)
    site.videos["v"] = site.video("v", title=evil, uploader=evil, pages=True)
    made.videos.append(site.videos["v"])
    url = f"{site.url}/c/{quote(name, safe='')}.rss?a=$(touch+{OWNED});--exec=x&b=%0a-o%20x"
    site.pages[f"/c/{quote(name, safe='')}.rss"] = site.answer(f"/c/{name}.rss")
    template = f"{{uploader}} --exec=touch {OWNED}/$(touch {OWNED}) {{title}} {{id}}"
    site.hold("/")
    desk.run()
    try:
        body = {"url": url, "title": evil, "template": template, "interval_s": 0,
                "filters": {"title_none": [f"--exec=touch {OWNED}x"]}}  # fmt: skip
        id = eve.post(SUBSCRIPTIONS, body, 201)["id"]
        site.wait_for(lambda: site.asked("/c/"), LONG_S)
        told = [seen(desk)]
        site.let_go()
        site.hold("/media/", half=True)
        site.wait_for(lambda: site.asked("/media/"), LONG_S)
        told.append(seen(desk))
        site.let_go()
        settled(eve, id)
    finally:
        site.let_go()
        desk.pause()
    for command, environment in told:
        assert command[1:3] == ["-I", "-B"]
        assert command[3].endswith("headway/apps/media/fetcher/boot.py")
        assert len(command) == 4
        assert set(environment) <= {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "YTDLP_NO_PLUGINS",
                                    "LC_CTYPE"}  # fmt: skip
        said = " ".join([*command, *environment.values()])
        for word in (OWNED, site.url, "exec", COOKIE, "SESSDATA", eve.tenant, str(site.port)):
            assert word not in said, word
    (item,) = eve.items(id)
    assert item["state"] == "done", item
    files = list((desk.server.data / "archive").rglob("*.mp4"))
    assert len(files) == 1
    assert COOKIE in site.asked("/media/")[-1].headers["Cookie"]


def seen(desk: Desk) -> tuple[list[str], dict[str, str]]:
    (program,) = programs(desk)
    return program.cmdline(), program.environ()
