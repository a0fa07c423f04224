"""Feeds of one tenant are nobody else's, and no site leads us where nobody may go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from tests.contract.feeds_kit import FEEDS, Desk, Reader, answers, feeds_desk, signed
from tests.contract.kit import JSON, new_name
from tests.feeds.strange_site import StrangeSite, feed, redirects
from tests.hands.kit import eventually
from tests.security.kit import Wire

BACKEND = "/api/backend"
GREADER = "/api/greader/reader/api/0"
MARK = "anns-own"  # in all that is Ann's
CANARY = "canary-token"
# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))
SETTINGS = f"{QUICK}\n[feeds]\nmax_feeds = 20\n"


@dataclass
class Town:
    desk: Desk
    site: StrangeSite
    ann: Reader
    eve: Reader
    ids: dict[str, Any] = field(default_factory=dict)  # Ann's, by what they are


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with feeds_desk(file=SETTINGS, log_level="debug") as desk:
        town = Town(desk, StrangeSite(desk.site), desk.reader(), desk.reader())
        settle(town)
        yield town


def settle(town: Town) -> None:
    """Ann has one of everything."""
    ann, ids = town.ann, town.ids
    page = town.site.put(feed(f"{MARK} one", f"{MARK} two"), path=f"/feed?token={CANARY}-own")
    made = ann.add(page, id=new_name(MARK), title=f"{MARK} title", folder=MARK)
    ids["feed"] = made["id"]
    ids["url"] = page.url
    eventually(lambda: ann.feed(made["id"])["article_count"] == 2)
    ids["article"] = ann.get(f"{BACKEND}/articles", feed=made["id"])["items"][0]["id"]
    ids["task"] = ann.force(made["id"])["task_id"]
    rule = {
        "name": MARK,
        "actions": ["star"],
        "conditions": [{"text": MARK}],
        "feeds": [made["id"]],
    }
    ids["rule"] = ann.post(f"{BACKEND}/rules", rule, 201)["id"]
    ids["round"] = ann.post(f"{BACKEND}/queue/schedule-all", {}, 202)["round_id"]
    eventually(lambda: ann.get(f"{BACKEND}/queue/rounds/{ids['round']}")["finished_at"])


def all_of(reader: Reader) -> dict[str, JSON]:
    """Everything that somebody has."""
    paths = ("feeds", "articles", "articles/stats", "rules", "folders", "queue/rounds")
    return {path: reader.get(f"{BACKEND}/{path}") for path in paths}


# ---------------------------------------------------------------------- what others have

# What is asked of each route that names something, with the name in the place of {…}. The answer
# is the same, whether it is Ann's or never was.
NAMED: dict[str, list[dict[str, Any]]] = {
    "GET /api/backend/feeds/{id}": [{"at": "{feed}"}],
    "PATCH /api/backend/feeds/{id}": [{"at": "{feed}", "json": {"title": "x"}},
                                      {"at": "{feed}", "json": {"paused": True}}],
    "PATCH /api/backend/feeds": [{"json": {"id": "{feed}", "title": "x"}}],
    "DELETE /api/backend/feeds/{id}": [{"at": "{feed}"}],
    "DELETE /api/backend/feeds": [{"params": {"id": "{feed}"}}],
    "PATCH /api/backend/folders": [{"json": {"name": "{folder}", "to": "x"}}],
    "DELETE /api/backend/folders": [{"params": {"name": "{folder}"}}],
    "POST /api/backend/queue/schedule-feed": [
        {"json": {"feed_id": "{feed}", "force_immediate": force}} for force in (True, False)],
    "POST /api/backend/queue/schedule-all": [{"json": {"feed_ids": ["{feed}"]}}],
    "GET /api/backend/queue/task/{id}": [{"at": "{task}"}],
    "GET /api/backend/queue/rounds/{id}": [{"at": "{round}"}],
    "GET /api/backend/articles": [{"params": {"feed": "{feed}"}}, {"params": {"q": "{folder}"}}],
    "GET /api/backend/articles/{id}": [{"at": "{article}"}],
    "PATCH /api/backend/articles/{id}": [{"at": "{article}", "json": {"is_read": True}}],
    "PATCH /api/backend/articles": [{"json": {"ids": ["{article}"], "is_starred": True}}],
    "POST /api/backend/articles": [{"json": {"feed_id": "{feed}", "title": "x", "url": "http://x/"}}],
    "POST /api/backend/articles/mark-read": [{"json": {"feed": "{feed}"}},
                                             {"json": {"folder": "{folder}"}}],
    "POST /api/backend/articles/{id}/archive": [{"at": "{article}", "json": {}}],
    "GET /api/backend/rules/{id}": [{"at": "{rule}"}],
    "PATCH /api/backend/rules/{id}": [{"at": "{rule}", "json": {"name": "x"}}],
    "DELETE /api/backend/rules/{id}": [{"at": "{rule}"}],
    "POST /api/backend/rules/{id}/apply": [{"at": "{rule}"}],
    "POST /api/backend/rules": [
        {"json": {"name": "x", "actions": ["read"], "feeds": ["{feed}"]}}],
    "POST /api/backend/rules/try": [
        {"json": {"name": "x", "actions": ["read"], "feeds": ["{feed}"]}}],
    **{f"GET {GREADER}/{path}": [{"params": params}] for path, params in {
        "stream/items/ids": {"s": "feed/{feed}"},
        "stream/items/contents": {"i": "{article}"},
        "stream/contents": {"s": "feed/{feed}"},
    }.items()},
    f"GET {GREADER}/stream/contents/{{stream}}": [{"at": "feed/{feed}"},
                                                  {"at": "user/-/label/{folder}"}],
    **{f"POST {GREADER}/{path}": [{"data": data} for data in some] for path, some in {
        "stream/items/contents": [{"i": "{article}"}],
        "edit-tag": [{"i": "{article}", "a": "user/-/state/com.google/starred"}],
        "mark-all-as-read": [{"s": "feed/{feed}"}, {"s": "user/-/label/{folder}"}],
        "rename-tag": [{"s": "user/-/label/{folder}", "dest": "user/-/label/x"}],
        "disable-tag": [{"s": "user/-/label/{folder}"}],
        "subscription/edit": [{"ac": "edit", "s": "feed/{feed}", "t": "x"},
                              {"ac": "unsubscribe", "s": "feed/{feed}"},
                              {"ac": "unsubscribe", "s": "feed/{url}"}],
    }.items()},
}  # fmt: skip
# These name nothing that somebody has: lists of one's own, and addresses of sites.
UNNAMED = {
    "GET /api/backend/feeds", "POST /api/backend/feeds", "GET /api/backend/folders",
    "GET /api/backend/queue-health", "GET /api/backend/queue/rounds", "GET /api/backend/rules",
    "GET /api/backend/articles/stats", "DELETE /api/backend/articles/old",
    "GET /api/backend/opml", "POST /api/backend/opml",
    *(f"POST /api/backend/rss/{each}" for each in ("validate", "parse", "discover", "subscribe")),
    "GET /api/greader/accounts/ClientLogin", "POST /api/greader/accounts/ClientLogin",
    *(f"GET {GREADER}/{each}" for each in (
        "token", "user-info", "subscription/list", "subscription/export", "tag/list",
        "unread-count", "preference/list", "preference/stream/list")),
    *(f"POST {GREADER}/{each}" for each in ("subscription/quickadd", "subscription/import")),
}  # fmt: skip
NEVER = {"feed": "never-was", "url": "http://127.0.9.9:9/never?token=x", "article": 987_654_321,
         "task": 987_654_321, "rule": "never-was", "round": "never-was",
         "folder": "never-was"}  # fmt: skip


def filled(what: Any, names: dict[str, Any]) -> Any:
    """With these names in it."""
    match what:
        case dict():
            return {key: filled(value, names) for key, value in what.items()}
        case list():
            return [filled(each, names) for each in what]
        case str() if what == "{article}":
            return names["article"]
        case str():
            return what.format(**names)
    return what


def asked(eve: Reader, name: str, request: dict[str, Any], names: dict[str, Any]) -> Any:
    method, _, path = name.partition(" ")
    request = dict(request)
    at = filled(request.pop("at", ""), names)
    path = re.sub(r"\{\w+\}", quote(str(at), safe="/"), path)
    answer = eve.http.request(method, path, **filled(request, names))
    text = re.sub(r'"updated":\s*\d+|http://\S+', "", answer.text)
    for word in sorted(map(str, names.values()), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "…", text)
    return answer.status_code, text


def test_what_another_tenant_has_is_as_if_it_never_was(town: Town) -> None:
    known = {each.name for each in town.eve.document.operations
             if each.path.startswith((BACKEND, "/api/greader"))}  # fmt: skip
    assert known == {*NAMED, *UNNAMED}, "say how a new route is asked for what others have"
    theirs = {**town.ids, "folder": MARK}
    before = all_of(town.ann)
    for name, requests in NAMED.items():
        for request in requests:
            said, never = (asked(town.eve, name, request, names) for names in (theirs, NEVER))
            assert said == never, name
            assert MARK not in said[1], name
            assert said[0] in (200, 404, 422, 400), (name, said)
            if "{id}" in name:
                assert said[0] == 404, name
    assert all_of(town.ann) == before


def test_nothing_of_it_is_in_any_list(town: Town) -> None:
    for name in UNNAMED:
        method, _, path = name.partition(" ")
        if method == "GET" and "ClientLogin" not in path:
            answer = town.eve.http.get(path)
            assert answer.status_code == 200, name
            assert MARK not in answer.text, name
            assert CANARY not in answer.text, name


# ---------------------------------------------------------------------- what is in an address


def test_a_token_in_an_address_is_told_to_nobody_else(town: Town) -> None:
    """Some sites give everybody an address of his own, and whoever has it is let in."""
    site, ann, eve = town.site, town.desk.reader(), town.desk.reader()
    secret = f"/{CANARY}?for={CANARY}"  # which looks like no token
    there = site.put(feed("one"), path=f"/there{secret}-there")
    unwell = site.put(answers(b"", 500), path=f"/unwell{secret}-unwell")
    pages = {
        "well": there,
        "unwell": unwell,
        "missing": site.put(answers(b"", 404), path=f"/missing{secret}-missing"),
        "busy": site.put(answers(b"", 429, Retry_After="60"), path=f"/busy{secret}-busy"),
        "page": site.put(answers(b"<html></html>"), path=f"/page{secret}-page"),
        "leads": site.put(redirects(302, there.url), path=f"/leads{secret}-leads"),
        "circle": site.put(redirects(302, f"/c{secret}-circle"), path=f"/c{secret}-circle"),
        "moves": site.put(redirects(301, unwell.url), path=f"/moves{secret}-moves"),
        "inside": site.put(redirects(302, f"http://10.1.2.3{secret}-in"), path=f"/in{secret}"),
    }
    for name, page in pages.items():
        ann.add(page, id=name)
        if name != "busy":
            ann.http.post(f"{BACKEND}/rss/validate", json={"url": page.url})
    # Eve is led to where Ann's address is, and hears nothing of it.
    open_page = site.put(redirects(302, pages["missing"].url))
    eve.add(open_page, id="led")
    imported(ann, lists(site.put(feed("one"), path=f"/listed{secret}").url))
    ann.http.post(f"{BACKEND}/feeds", json={"url": f"ftp://a.example{secret}-wrong"})
    # As reader apps name a feed, in whatever way it is written.
    known = f"http://127.9.9.9/feed?token={CANARY}"
    for named in (known, quote(known), quote(known, safe="")):
        ann.http.get(f"{GREADER}/stream/items/ids?s=feed/{named}")
        ann.http.get(f"{GREADER}/stream/contents/feed/{named}")
        ann.http.get(f"{BACKEND}/feeds?q={named}")
        ann.http.get(f"{BACKEND}/feeds/{named}")
    for name in pages:
        assert name == "busy" or ann.settled(name)["status"] in ("ok", "error")
        assert CANARY not in str(ann.feed(name)["error"])
    assert CANARY not in str(eve.settled("led"))
    admin = town.desk.admin()
    told = {path: admin.http.get(path, params={"limit": 1_000}).text for path in (
        "/metrics", "/api/trail", "/api/audit", "/api/upstreams", "/api/queue/stats", "/api/lanes",
    )}  # fmt: skip
    told["log"] = town.desk.server.printed()
    assert "404" in told["log"]
    for where, text in told.items():
        assert CANARY not in text, f"{where}: {text[max(0, text.index(CANARY) - 300) :][:600]}"


# ---------------------------------------------------------------------- limits


def lists(*urls: str) -> str:
    return f"<opml><body>{''.join(f'<outline xmlUrl={url!r}/>' for url in urls)}</body></opml>"


@pytest.mark.parametrize("way", ["at once", "one by one", "import", "reader app", "both"])
def test_nobody_has_more_feeds_than_are_allowed(town: Town, way: str) -> None:
    eve = town.desk.reader()
    urls = [f"http://127.9.9.9:9/{number}" for number in range(25)]
    form = {"content-type": "application/x-www-form-urlencoded"}
    if way == "at once":
        said = eve.problem(409, "POST", FEEDS, "too-many-feeds", json=[{"url": u} for u in urls])
        assert "at most 20 feeds" in said["detail"]
        assert eve.feeds() == []
        return
    if way == "one by one":
        sent = [eve.http.post(FEEDS, json={"url": url}).status_code for url in urls]
        assert sent == [201] * 20 + [409] * 5
    elif way == "reader app":
        sent = [eve.http.post(f"{GREADER}/subscription/edit", headers=form,
                              data={"ac": "subscribe", "s": f"feed/{url}"}).status_code
                for url in urls]  # fmt: skip
        assert sent == [200] * 20 + [400] * 5
    else:
        others = [url.replace("9:9", "8:9") for url in urls]
        some = [lists(*urls)] if way == "import" else [lists(*urls), lists(*others)]
        with ThreadPoolExecutor(2) as pool:
            rounds = list(pool.map(lambda text: imported(eve, text), some))
        assert sum(each["added"] for each in rounds) == 20
        assert all("20 feeds" in each["invalid_feeds"][-1]["why"] for each in rounds)
    assert len(eve.feeds()) == 20


def imported(reader: Reader, text: str) -> JSON:
    answer = reader.http.post(
        f"{BACKEND}/opml", content=text, headers={"content-type": "text/x-opml"}
    )
    path = f"{BACKEND}/queue/rounds/{answer.json()['id']}"
    many = text.count("<outline")

    def is_taken_in() -> JSON | None:
        seen = reader.get(path)
        known = seen["added"] + seen["duplicates"] + seen["invalid"]
        return seen if known == many else None

    found: JSON = eventually(is_taken_in)
    return found


ENTITIES = "<!DOCTYPE opml [<!ENTITY a 'x'><!ENTITY b '&a;&a;&a;&a;'>]>"


@pytest.mark.parametrize("path", [f"{BACKEND}/opml", f"{GREADER}/subscription/import"])
def test_a_list_that_is_a_trap_is_refused(town: Town, path: str) -> None:
    eve = town.desk.reader()
    for text in (
        f"{ENTITIES}<opml><body><outline xmlUrl='http://a.example/&b;'/></body></opml>",
        f"<!DOCTYPE opml SYSTEM '{town.site.put(feed('one')).url}'>" + lists("http://a.example/"),
        "<opml><body>" + "<outline text='x'>" * 100_000,
    ):
        answer = eve.http.post(path, content=text, headers={"content-type": "text/xml"})
        assert answer.status_code in (200, 202, 400, 422), answer.text
        assert "&b;" not in str(eve.feeds())
    arrived = len(town.site.arrivals)
    long = "<opml>" + " " * 50_000_000
    answer = eve.http.post(path, content=long, headers={"content-type": "text/xml"})
    assert answer.status_code == 413
    assert len(town.site.arrivals) == arrived


@pytest.mark.parametrize("name", sorted({*NAMED, *UNNAMED}))
def test_no_body_is_taken_that_is_too_long(town: Town, name: str) -> None:
    method, _, path = name.partition(" ")
    if method not in ("POST", "PATCH"):
        return
    path = re.sub(r"\{\w+\}", "1", path)
    with Wire(town.desk.server.url) as wire:
        said = {"authorization": f"Bearer {signed('eve')}", "content_type": "application/json"}
        wire.send(wire.head(method, path, content_length="400000000", **said) + b"\r\n")
        wire.send(b" " * 1_000)
        assert wire.answer().status in (413, 400)
