"""A real server and a site with every behaviour: each feed is shown for what it is, none harms
another, and no host is asked twice within a second.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.contract.feeds_kit import FEEDS, Desk, Reader, answers, feeds_desk, held
from tests.contract.kit import JSON
from tests.feeds.strange_site import ETAG, MODIFIED, StrangeSite, feed, redirects, silent
from tests.hands.kit import eventually
from tests.live.strange_feeds import ACCENTS, CHINESE, NASTY_TITLE, Crowd

ALL_S = 60.0  # for all of them to have been visited
QUICK_S = 1.0  # for the server to answer, whatever its feeds do
APART_S = 0.95  # a second, but for the moment in which the site looks at its clock
ARTICLES = "/api/backend/articles"
TASK = "/api/backend/queue/task"
AGAIN = ("validators", "same", "growing", "moved", "elsewhere for now", "moves later", "undated",
         "twice", "missing", "nasty", "huge")  # fmt: skip
LEFT_ALONE = r"closed \(429 pushback, Retry-After 90 s\)"
SECRET_TEXT = "canary-in-a-file"


@dataclass
class Show:
    """All that came of it."""

    desk: Desk
    site: StrangeSite
    crowd: Crowd
    ann: Reader
    first: dict[str, JSON]  # each feed, after its first visit
    second: dict[str, JSON] = field(default_factory=dict)
    answered_s: list[float] = field(default_factory=list)

    def articles(self, name: str) -> list[JSON]:
        """With all of their text."""
        found = self.ann.get(ARTICLES, feed=safe(name), size=5)["items"]
        return [self.ann.get(f"{ARTICLES}/{each['id']}") for each in found]


def safe(name: str) -> str:
    """As an id."""
    return re.sub(r"[^a-z0-9]+", "-", name)


@contextmanager
def watching(reader: Reader, took_s: list[float]) -> Iterator[None]:
    """Somebody asks the server something all the time."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.05):
            began = monotonic()
            assert reader.http.get("/api/queue/stats").status_code == 200
            took_s.append(monotonic() - began)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            yield
        finally:
            over.set()
            asked.result()


def visited_again(ann: Reader, names: tuple[str, ...], before: dict[str, JSON]) -> dict[str, JSON]:
    for name in names:
        assert (name, ann.force(safe(name))["status"]) == (name, "queued")
    return seen_by(ann, names, lambda name, now: now["last_tried"] != before[name]["last_tried"])


def seen_by(
    ann: Reader, names: tuple[str, ...], is_over: Callable[[str, JSON], Any]
) -> dict[str, JSON]:
    """Those feeds when all is over. Nobody looks all the time: the site is in this process, and
    keeps the time.
    """
    between = threading.Event()

    def look() -> dict[str, JSON] | None:
        between.wait(0.1)
        shown = {each["id"]: each for each in ann.http.get(FEEDS).json()["feeds"]}
        found = {name: shown[safe(name)] for name in names}
        ended = all(is_over(name, now) and not now["refreshing"] for name, now in found.items())
        return found if ended else None

    found: dict[str, JSON] = eventually(look, ALL_S)
    return found


def was_visited(_: str, now: JSON) -> bool:
    """What was found is counted a moment after it is known that all went well."""
    return bool(now["last_tried"]) and (now["status"] != "ok" or now["article_count"] > 0)


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Show]:
    secret: Path = tmp_path_factory.mktemp("secret") / "file"
    secret.write_text(SECRET_TEXT)
    with feeds_desk() as desk:
        site = StrangeSite(desk.site)
        crowd = Crowd(site, str(secret))
        ann, watcher = desk.reader(), desk.reader()
        took_s: list[float] = []
        with watching(watcher, took_s):
            ann.post(FEEDS, [{"id": safe(n), "url": p.url} for n, p in crowd.pages.items()], 201)
            first = seen_by(ann, tuple(crowd.pages), was_visited)
            show = Show(desk, site, crowd, ann, first, answered_s=took_s)
            show.second = visited_again(ann, AGAIN, first)
        yield show


# ---------------------------------------------------------------------- each for itself


def test_each_feed_is_shown_for_what_it_is(show: Show) -> None:
    wrong = []
    for name, case in show.crowd.cases.items():
        now = show.first[name]
        told = (now["status"], now["article_count"], bool(now["error"]))
        if told != (case.status, case.articles, bool(case.error)):
            wrong.append(f"{name}: {told} {now['error']}")
        elif case.error and not re.search(case.error, now["error"]):
            wrong.append(f"{name}: {now['error']}")
    assert wrong == []
    assert len(show.crowd.cases) > 50


def test_nobody_came_where_nobody_should(show: Show) -> None:
    assert show.crowd.stolen.visits == []
    assert show.crowd.inside.visits == []
    assert SECRET_TEXT not in show.ann.send("GET", ARTICLES, params={"size": 200}).text


def test_the_server_stays_quick_meanwhile(show: Show) -> None:
    """A single late answer may be the machine's."""
    assert len(show.answered_s) > 20
    assert sorted(show.answered_s)[int(0.95 * len(show.answered_s))] < QUICK_S


def test_no_host_is_asked_twice_within_a_second(show: Show) -> None:
    gaps = show.site.gaps_s()
    assert len(gaps) >= len(AGAIN)
    assert {host: gap for host, gap in gaps.items() if gap < APART_S} == {}
    assert set(show.site.most_at_once.values()) == {1}


# ---------------------------------------------------------------------- the second visit


def test_the_second_visit_asks_only_for_what_has_changed(show: Show) -> None:
    first, second = show.crowd.pages["validators"].visits
    assert "if-none-match" not in first
    assert (second["if-none-match"], second["if-modified-since"]) == (ETAG, MODIFIED)
    for name, articles in {"validators": 1, "same": 1, "twice": 2, "undated": 1, "growing": 3,
                           "nasty": 1, "huge": 1}.items():  # fmt: skip
        now = show.second[name]
        assert (now["status"], now["error"]) == ("ok", None)
        assert (name, now["article_count"]) == (name, articles)


def test_what_has_moved_for_good_is_asked_there_and_what_has_not_is_not(show: Show) -> None:
    pages, crowd = show.crowd.pages, show.crowd
    assert show.first["moved"]["url"] == crowd.new_home.url
    assert (len(pages["moved"].visits), len(crowd.new_home.visits)) == (1, 2)
    assert show.second["elsewhere for now"]["url"] == pages["elsewhere for now"].url
    assert (len(pages["elsewhere for now"].visits), len(crowd.for_now.visits)) == (2, 2)
    # One that moves with the same document as before has moved, too.
    assert show.first["moves later"]["url"] == pages["moves later"].url
    assert show.second["moves later"]["url"] == crowd.late_home.url
    assert show.second["moves later"]["article_count"] == 1


def test_who_fails_for_now_is_tried_again_soon_and_who_fails_for_good_later(show: Show) -> None:
    def waits_s(name: str) -> float:
        now = show.first[name]
        due, tried = (datetime.fromisoformat(now[key]) for key in ("next_refresh_at", "last_tried"))
        return (due - tried).total_seconds()

    assert 50 < waits_s("unwell") < 90
    assert 50 < waits_s("half") < 90
    assert 20 * 60 < waits_s("missing") < 40 * 60
    assert show.first["missing"]["failures"] == 1
    assert show.second["missing"]["failures"] == 2
    assert show.first["gone"]["next_refresh_at"] is None
    assert len(show.crowd.pages["gone"].visits) == 1


def test_a_host_that_wants_to_be_left_alone_is_and_others_there_are_told_why(show: Show) -> None:
    ann, beside = show.ann, show.crowd.beside
    made = ann.add(beside)
    task = why_it_waits(ann, made["id"])
    assert 20 < (datetime.fromisoformat(task["eta"]) - datetime.now(UTC)).total_seconds() < 100
    assert ann.feed(made["id"])["status"] == "new"
    assert (len(show.crowd.pages["busy"].visits), beside.visits) == (1, [])
    ann.remove(made["id"])


def test_it_is_the_host_that_said_so_that_is_left_alone(show: Show) -> None:
    """Not the one that has led there, nor one where somebody has only looked."""
    ann, site = show.desk.reader(), show.site
    away, here = show.desk.site.host(), show.desk.site.host()
    busy = site.put(answers(b"", 429, Retry_After="90"), path="/busy", host=away)
    leads = site.put(redirects(302, busy.url), host=here)
    failed = ann.settled(ann.add(leads)["id"])
    assert (failed["status"], failed["url"]) == ("error", leads.url)
    assert re.search(r"^127\.0\.\d+\.\d+ answered 429", failed["error"])
    assert ann.settled(ann.add(site.put(feed("one"), path="/b", host=here))["id"])["status"] == "ok"
    beside = site.put(feed("one"), path="/c", host=away)
    assert why_it_waits(ann, ann.add(beside)["id"])
    assert (len(busy.visits), beside.visits) == (1, [])

    looked_at = site.put(answers(b"", 429, Retry_After="90"))
    assert not ann.post("/api/backend/rss/validate", {"url": looked_at.url})["valid"]
    assert why_it_waits(ann, ann.add(looked_at)["id"])
    assert len(looked_at.visits) == 1


def why_it_waits(reader: Reader, id: str) -> JSON:
    """The task, once it is known that its host wants to be left alone."""
    task = reader.force(id)["task_id"]
    found: JSON = eventually(lambda: (seen := reader.get(f"{TASK}/{task}"))["wait_reason"] and seen)
    assert re.search(LEFT_ALONE, found["wait_reason"]), found
    return found


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("name", [
    "latin-1 sent as utf-8", "utf-8 sent as latin-1", "utf-16", "gbk, declared",
    "gbk, in the header", "gbk, undeclared", "gbk, declared as utf-8",
])  # fmt: skip
def test_letters_are_those_that_were_meant(show: Show, name: str) -> None:
    (article,) = show.articles(name)
    assert article["title"] == (ACCENTS if "latin" in name else CHINESE)


def test_what_is_shown_can_do_no_harm(show: Show) -> None:
    (article,) = show.articles("nasty")
    shown = str(article["content"] or "") + str(article["summary"] or "")
    assert "kept" in shown
    assert article["title"] == NASTY_TITLE  # plain text, and no tag in it is one
    for word in ("script", "onclick", "onerror", "onload", "style", "iframe", "svg", "form", "evil",
                 "data:", "object", "embed", "<base", "<meta", "<math", "alert"):  # fmt: skip
        assert word not in shown.lower(), word
    bold = {each["title"]: each for each in show.articles("json")}["First"]
    assert bold["content"] == "<b>bold</b>"


def test_dates_are_never_in_the_future_and_those_that_are_missing_stay(show: Show) -> None:
    now = datetime.now(UTC)
    (ahead,) = show.articles("future")
    assert datetime.fromisoformat(ahead["at"]) <= now
    (undated,) = show.articles("undated")
    assert undated["published_at"] is None
    assert undated["at"] < show.second["undated"]["last_tried"]


def test_what_is_too_much_is_cut_and_the_rest_is_there(show: Show) -> None:
    (huge,) = show.articles("huge")
    assert 100_000 < len(huge["content"]) <= 2_000_000
    assert len(huge["summary"]) <= 300
    (long,) = show.articles("long")
    assert (len(long["title"]), len(long["categories"])) == (1_000, 1)
    assert show.first["long"]["title"] == "N" * 300
    (controls,) = show.articles("controls")
    assert controls["title"] == "abc[31m"
    titles = {each["title"] for each in show.articles("json")}
    assert titles == {"First", "half of a pair"}


# ---------------------------------------------------------------------- together


def test_one_feed_of_two_tenants_is_fetched_once_for_both(show: Show) -> None:
    page = show.site.put(feed("one"))
    readers = [show.desk.reader(), show.desk.reader()]
    with held(page) as asked:
        ids = [reader.add(page)["id"] for reader in readers]
        assert asked.wait(20)
    for reader, id in zip(readers, ids, strict=True):
        assert reader.settled(id)["article_count"] == 1
        eventually(lambda r=reader, i=id: r.feed(i)["article_count"] == 1)
    before = len(page.visits)
    with held(page) as asked, ThreadPoolExecutor(2) as both:
        said = list(both.map(lambda pair: pair[0].force(pair[1]), zip(readers, ids, strict=True)))
        assert {each["status"] for each in said} <= {"queued", "already_running"}
        assert asked.wait(20)
        assert [reader.force(id)["status"] for reader, id in zip(readers, ids, strict=True)] == [
            "already_running", "already_running",
        ]  # fmt: skip
    eventually(lambda: not any(r.feed(i)["refreshing"] for r, i in zip(readers, ids, strict=True)))
    assert len(page.visits) == before + 1
    assert "2 subscribers" in page.visits[-1]["user-agent"]
    assert show.site.most_at_once[page.url] == 1


def test_previews_hops_and_what_is_forced_keep_the_pace_together(show: Show) -> None:
    host = show.desk.site.host()
    pages = [show.site.put(feed("one"), path=f"/{name}", host=host) for name in "abcd"]
    leads = show.site.put(redirects(302, "/d"), path="/leads", host=host)
    ann = show.desk.reader()
    with ThreadPoolExecutor(4) as people:
        looks = [people.submit(ann.post, "/api/backend/rss/validate", {"url": pages[0].url})]
        added = [people.submit(ann.add, page) for page in (*pages[1:3], leads)]
        ids = [each.result()["id"] for each in added]
        assert looks[0].result()["valid"]
    for id in ids:
        assert ann.settled(id)["status"] == "ok"
    ann.force(ids[0])
    eventually(lambda: len(pages[1].visits) == 2)
    at = [each.at for each in show.site.arrivals if f"http://{each.host}" == host]
    assert len(at) == 6
    assert show.site.gaps_s()[host.removeprefix("http://")] >= APART_S


@pytest.mark.soak
def test_who_never_answers_is_given_up_and_holds_up_nobody(show: Show) -> None:
    ann, site, over = show.desk.reader(), show.site, threading.Event()
    try:
        quiet = [ann.add(site.put(silent(over)))["id"] for _ in range(5)]
        led = ann.add(site.put(redirects(302, show.crowd.beside.url)))["id"]
        other = ann.add(site.put(feed("one")))["id"]
        assert ann.settled(other)["status"] == "ok"
        for id in quiet:
            now: JSON = eventually(lambda i=id: (seen := ann.feed(i))["last_tried"] and seen, 60)
            assert (now["status"], now["failures"]) == ("error", 0)
            assert "has not answered in time" in now["error"]
        assert "is asked by others, or not now; it is tried again" in ann.settled(led)["error"]
    finally:
        over.set()
