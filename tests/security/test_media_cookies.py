"""The cookies of an account come out nowhere: not when all goes well, not when it fails, and not
when the site itself says them back to us.
"""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import psutil
import pytest

from tests.contract.kit import Api, listening
from tests.contract.media_kit import Archivist, Desk, media_desk
from tests.hands.kit import eventually

ACCOUNTS = "/api/archive/accounts"
LONG_S = 90.0


def canary() -> str:
    """With signs that are written in another way in addresses."""
    return f"canary{uuid4().hex}/+x*yz"


def forms(word: str) -> list[str]:
    raw = word.encode()
    return [
        word, quote(word), quote(word, safe=""), quote_plus(word), word.partition("/")[0],
        base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(),
    ]  # fmt: skip


@dataclass
class Cage:
    """A server that has worked with a secret, and all that it told anybody."""

    desk: Desk
    good: str
    others: list[str] = field(default_factory=list)  # that were refused, or replaced
    told: dict[str, str] = field(default_factory=dict)
    modes: list[tuple[int, int, str]] = field(default_factory=list)
    after_kill: list[str] = field(default_factory=list)
    after_start: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def cage() -> Iterator[Cage]:
    with media_desk(log_level="debug") as desk:
        cage = Cage(desk, canary())
        add_accounts(cage)
        talkative_site(cage)
        ann = desk.archivist()
        work(cage, ann)
        die(cage)
        look_everywhere(cage, ann)
        desk.server.stop()
        cage.told["the log"] = desk.server.printed()
        yield cage


def add_accounts(cage: Cage) -> None:
    """And much that is no account, with secrets in it all the same."""
    keeper, site = cage.desk.keeper(), "127.0.0.1"
    usual: dict[str, Any] = {"name": "ann", "site": site, "check_url": ""}

    def new() -> str:
        cage.others.append(canary())
        return cage.others[-1]

    old = f"{site}\tFALSE\t/\tFALSE\t{int(time()) - 60}\tSESSDATA\t"
    wrong: list[Any] = [
        {**usual, "cookies": [new()]}, {**usual, "cookies": {"SESSDATA": new()}},
        {**usual, "cookies": 5, "more": new()}, {**usual, "name": 5, "cookies": f"S={new()}"},
        {**usual, "site": "not a site", "cookies": f"S={new()}"}, {"cookies": f"S={new()}"},
        {**usual, "cookies": new()}, {**usual, "cookies": f"S\0={new()}"},
        {**usual, "cookies": f"S=a\r\nb: {new()}"}, {**usual, "cookies": f"{old}{new()}"},
        {**usual, "cookies": f"other.example\tFALSE\t/\tFALSE\t0\tS\t{new()}"},
        {**usual, "cookies": f'[{{"name": 5, "value": "{new()}"}}]'},
        {**usual, "cookies": f'{{"SESSDATA": "{new()}"'},
        {**usual, "cookies": f"S={new()}", "check_url": f"https://a.example/{new()}"},
        {**usual, "cookies": f"S={new()}", "check_url": f"ftp://x:{new()}@{site}/"}, [new()], new(),
    ]  # fmt: skip
    for number, body in enumerate(wrong):
        answer = keeper.http.post(ACCOUNTS, json=body)
        cage.told[f"wrong {number}"] = f"{answer.headers} {answer.text}"
        assert answer.status_code == 422, (number, answer.text)
    made = keeper.post(ACCOUNTS, {**usual, "cookies": f"SESSDATA={new()}"}, 201)
    path = f"{ACCOUNTS}/{made['id']}"
    for number, body in enumerate(({"cookies": [new()]}, {"cookies": new()}, {"x": new()})):
        answer = keeper.http.put(f"{path}/cookies", json=body)
        cage.told[f"wrong replacement {number}"] = answer.text
        assert answer.status_code == 422
    good = f"SESSDATA={cage.good}; lang=en"
    for what, answer in {
        "replaced": keeper.http.put(f"{path}/cookies", json={"cookies": good}),
        "changed": keeper.http.patch(path, json={"name": "renamed"}),
        "shown": keeper.http.get(path),
        "twice": keeper.http.post(ACCOUNTS, json={**usual, "name": "renamed", "cookies": good}),
    }.items():
        cage.told[what] = f"{answer.headers} {answer.text}"


def talkative_site(cage: Cage) -> None:
    """It says back what it was told, wherever a page can say something."""
    site, said = cage.desk.site, cage.good
    url = quote(said, safe="")
    site.needs_cookie = True
    site.good_cookies = {said}
    site.cookie_paths = ("/media/", "/c/")
    made = site.collection("c", count=0, title=f"You are {said}")
    all_of_it = site.video("all", title=f"Hello {said}", uploader=said, more={
        "description": f"Your cookie is {said}", "keywords": [said, url],
        "thumbnailUrl": f"{site.url}/thumb/all.jpg?s={url}",
        "contentUrl": f"{site.url}/media/all.mp4?session={url}",
    })  # fmt: skip
    made.videos += [site.video("moved"), site.video("refused"), site.video("gone")]
    site.redirect("/watch/moved", f"{site.watch_url(all_of_it.id)}?token={url}&raw={quote(said)}")
    page = f"<html><title>{said}</title>{said} {url}</html>"
    site.page("/watch/refused", page, status=500, headers={"Set-Cookie": f"again={said}; Path=/"})
    site.page("/watch/gone", page, status=404, headers={"X-Session": said})


def work(cage: Cage, ann: Archivist) -> None:
    desk, site = cage.desk, cage.desk.site
    site.hold("/media/", half=True)
    desk.run()
    id = ann.add(site.collection_url("c"), interval_s=0)["id"]
    site.wait_for(lambda: site.asked("/media/"), LONG_S)
    place = desk.server.data / "cookies"
    for file in place.iterdir():
        mode = stat.S_IMODE(file.stat().st_mode)
        cage.modes.append((stat.S_IMODE(place.stat().st_mode), mode, file.read_text()))
    (program,) = psutil.Process(desk.server.pid).children(recursive=True)[-1:]
    cage.told["its command"] = str(program.cmdline())
    cage.told["its environment"] = str(program.environ())
    site.let_go()

    def over() -> bool:
        items = ann.items(id)
        return len(items) == 3 and all(each["state"] == "done" or each["failures"]
                                       for each in items)  # fmt: skip

    eventually(over, LONG_S)
    cage.told["items"] = str(ann.items(id))
    desk.keeper().post("/api/queue/pause", scope="requires_cookie")


def die(cage: Cage) -> None:
    """The server is killed while a program has its file."""
    desk, site = cage.desk, cage.desk.site
    site.video("last", pages=False)
    site.hold("/media/last", half=True)
    desk.keeper().post("/api/queue/resume", scope="requires_cookie")
    body = {"type": "download", "url": site.media_url("last"), "requires_cookie": True}
    desk.keeper().post("/api/requests/enqueue", body, 202)
    site.wait_for(lambda: site.asked("/media/last"), LONG_S)
    programs = psutil.Process(desk.server.pid).children(recursive=True)
    place = desk.server.data / "cookies"
    desk.server.kill()
    cage.after_kill = [each.name for each in place.iterdir()]
    site.let_go()
    psutil.wait_procs(programs, LONG_S)
    desk.server.start()
    cage.after_start = [each.name for each in place.iterdir() if each.name in cage.after_kill]
    keeper = desk.keeper()
    eventually(
        lambda: (
            not [
                each
                for each in keeper.get("/api/requests", type="download")["items"]
                if each["url"] == body["url"] and each["status"] != "done"
            ]
        ),
        LONG_S,
    )


def look_everywhere(cage: Cage, ann: Archivist) -> None:
    for name, api in {"keeper": cage.desk.keeper(), "ann": cage.desk.archivist(ann.tenant)}.items():
        told = cage.told
        for each in api.document.operations:
            if each.method != "GET" or each.path in ("/api/events", "/api/requests/events"):
                continue
            numbers = range(1, 8) if "{" in each.path else (1,)
            for number in numbers:
                at = each.path.replace("{id}", str(number)).replace("{secret}", "x")
                if "{" not in at:
                    told[f"{name} {at}"] = api.http.get(at).text
        for kind in ("info", "nfo"):
            for number in range(1, 6):
                at = f"/api/archive/items/{number}/file?kind={kind}"
                told[f"{name} {at}"] = api.http.get(at).text
        for path in ("/metrics", "/openapi.json", "/", "/api/trail?limit=1000"):
            told[f"{name} {path}"] = api.http.get(path).text
    listen(cage, cage.desk.keeper())


def listen(cage: Cage, api: Api) -> None:
    last = max(row["id"] for row in api.get("/api/trail", limit=1000)["items"])
    with listening(api, "/api/events", last=0) as stream:
        while (event := stream.event())["id"] < last:
            cage.told[f"event {event['id']}"] = str(event)


def test_no_cookie_comes_out_anywhere(cage: Cage) -> None:
    found = [(which, place) for which in (cage.good, *cage.others) for form in forms(which)
             for place, text in cage.told.items() if form in text]  # fmt: skip
    assert found == []


def test_nor_is_one_kept_but_sealed(cage: Cage) -> None:
    """In the database, in the library, in names of files: nowhere below the server's directory."""
    top = cage.desk.server.data.parent
    files = [each for each in top.rglob("*") if each.is_file()]
    found = []
    for file in files:
        content = file.read_bytes()
        for word in (cage.good, *cage.others):
            for form in forms(word):
                if form.encode() in content or form in str(file):
                    found.append((word, str(file.relative_to(top))))
    assert found == []
    names = {Path(each).suffix for each in files}
    assert {".mp4", ".json", ".nfo", ".db"} <= names


def test_there_was_something_to_find(cage: Cage) -> None:
    assert len(cage.told) > 150
    assert "[redacted]" in cage.told["items"]
    site = cage.desk.site
    assert any(
        cage.good in each.headers.get("Cookie", "") for each in site.asked("/watch/all?token")
    )
    assert any(cage.good in each.headers.get("Cookie", "") for each in site.asked("/c/"))
    assert "/api/archive/accounts" in cage.told["the log"]
    infos = list((cage.desk.server.data / "archive").rglob("*.info.json"))
    assert any("[redacted]" in each.read_text() for each in infos)
    assert "renamed" in cage.told["changed"]


def test_a_program_reads_a_file_that_nobody_else_can(cage: Cage) -> None:
    assert len(cage.modes) == 1
    directory, file, content = cage.modes[0]
    assert (directory, file) == (0o700, 0o600)
    assert content.startswith("# Netscape HTTP Cookie File\n")
    assert cage.good in content
    place = cage.desk.server.data / "cookies"
    assert list(place.iterdir()) == []


def test_a_file_that_a_killed_server_has_left_is_gone_with_the_next_start(cage: Cage) -> None:
    assert len(cage.after_kill) == 1
    assert cage.after_start == []


def test_the_key_is_for_the_server_alone(cage: Cage) -> None:
    keys = [each for each in cage.desk.server.data.iterdir()
            if each.is_file() and "key" in each.name]  # fmt: skip
    assert keys
    assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in keys} == {0}
