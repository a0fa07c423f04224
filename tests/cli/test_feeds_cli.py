"""Feeds on the command line: on a server with a site that it may call, and without a server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.cli import feed_layouts, feed_rounds
from headway.cli.feed_names import short_names
from headway.cli.feed_rules import condition_of
from tests.cli.kit import Cli
from tests.contract.feeds_kit import Desk, Page, answers, feeds_desk, signed
from tests.contract.kit import new_name
from tests.hands.kit import eventually

# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))
ELSEWHERE = "https://blog.example/feed"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with feeds_desk(file=QUICK) as desk:
        yield desk


@pytest.fixture
def cli(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command of somebody whom nobody knows yet."""
    return cli_of(desk, capsys, new_name("tenant"))


def cli_of(desk: Desk, capsys: pytest.CaptureFixture[str], tenant: str, *scopes: str) -> Cli:
    options = ("--server", desk.server.url, "--token", signed(tenant, *scopes))
    return Cli(capsys, options, served=True)


@pytest.fixture
def offline(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """The command on a store that nobody serves."""
    data = tmp_path / "data"
    data.mkdir()
    cli = Cli(capsys, ("--data", str(data)))
    assert cli("migrate").code == 0
    return cli


def add(cli: Cli, page: Page, *more: str) -> dict[str, Any]:
    """A feed that was fetched."""
    made: dict[str, Any] = cli.json("feeds", "add", page.url, *more)
    assert made["status"] != "new"
    return made


def opml(*urls: str) -> str:
    lines = "".join(f'<outline text="One of them" xmlUrl="{url}"/>' for url in urls)
    return f'<opml version="2.0"><body><outline text="Old">{lines}</outline></body></opml>'


# ---------------------------------------------------------------------- subscribing


def test_the_address_of_a_site_is_enough_and_its_articles_are_there(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one", "two")
    front = desk.site.page(path="/", host=page.url.removesuffix("/feed"))
    link = (
        '<html><head><link rel="alternate" type="application/rss+xml" href="/feed"></head></html>'
    )
    front.says = answers(link.encode(), Content_Type="text/html")
    said = cli("feeds", "add", front.url, "--folder", "News/World", "--every", "2h")
    assert said.code == 0
    assert said.out.startswith("A site is added as ")
    assert said.out.endswith(": 2 articles\n")
    (found,) = cli.json("feeds", "ls")["feeds"]
    assert (found["url"], found["folder"], found["refresh_interval"]) == (
        page.url,
        "News/World",
        120,
    )
    listed = cli("feeds").out
    assert found["id"][:8] in listed
    assert "News/World       2  ok" in listed
    assert "1 feed, 2 unread" in listed
    assert cli.json("feeds", "ls") == cli.json("feeds", "list")
    shown = cli("feeds", "show", found["id"]).out
    assert "every 2 h" in shown
    assert "2, 2 unread" in shown


def test_a_feed_by_its_exact_address_and_with_a_name_of_ones_own(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one")
    made = add(cli, page, "--exact", "--id", "mine", "--title", "Mine", "--adaptive")
    assert (made["id"], made["title"], made["adaptive"]) == ("mine", "Mine", True)
    assert "you have this already, as 'mine'" in cli.refuses("feeds", "add", page.url, "--exact")
    later = desk.site.page("one")
    assert cli.json("feeds", "add", later.url, "--no-wait", "--exact")["title"]


def test_what_is_no_feed_is_said_in_words(desk: Desk, cli: Cli) -> None:
    page = desk.site.page()
    page.says = answers(b"", 404)
    assert "answered 404 Not Found; check the address" in cli.refuses("feeds", "add", page.url)
    assert "private network" in cli.refuses("feeds", "add", "http://10.0.0.1/feed")
    assert cli.json("feeds")["feeds"] == []
    said = cli("feeds", "add", page.url, "--exact")  # it may be there tomorrow
    assert said.code == 0
    assert "answered 404" in said.out
    assert "404" in cli("feeds", "ls", "--status", "error").out


def test_discovering_changes_nothing(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one", "two")
    said = cli("feeds", "discover", page.url).out
    assert page.url in said
    assert "can be read" in said
    assert cli("feeds").out == "no feeds; add one with `headway feeds add`\n"
    assert cli.json("feeds", "discover", page.url)["candidates"][0]["article_count"] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("add", "example.com", "--every", "90s"),
        ("add", "example.com", "--every", "8d"),
        ("add", "example.com", "--every", "30"),
        ("edit", "some"),
        ("refresh",),
        ("refresh", "some", "--all"),
        ("mark-read",),
        ("mark-read", "--all", "--folder", "News"),
        ("rules", "try"),
        ("read",),
        ("--json", "show", "some"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(
    bare: Cli, words: tuple[str, ...]
) -> None:
    assert bare("feeds", *words).code == 2


# ---------------------------------------------------------------------- changing


def test_a_feed_is_changed_paused_and_removed(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one")
    id = add(cli, page)["id"]
    assert "Old names" in cli("feeds", "edit", id, "--title", "Old names", "--folder", "A/B").out
    changed = cli.json("feeds", "edit", id, "--title", "", "--folder", "", "--every", "1d")
    assert (changed["title"], changed["folder"], changed["refresh_interval"]) == (
        "A site",
        "",
        1440,
    )
    assert "paused" in cli("feeds", "pause", id).out
    paused = cli("feeds", "ls", "--status", "paused").out
    assert "1 feed, 1 unread" in paused
    assert cli.json("feeds", "resume", id)["paused"] is False
    assert cli("feeds", "ls", "--status", "paused").out == "no such feeds\n"
    said = cli.refuses("feeds", "rm", id)
    assert said == "this would remove A site with 1 article; say --yes"
    assert cli("feeds", "rm", id, "--yes").out == "A site is removed, with 1 article\n"
    assert "there is no feed" in cli.refuses("feeds", "rm", id, "--yes")


def test_whoever_is_asked_may_change_his_mind(
    desk: Desk, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = add(cli, desk.site.page("one"))["id"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert cli.refuses("feeds", "rm", id) == "nothing was done"
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert cli("feeds", "rm", id).code == 0


def test_folders_narrow_the_list(desk: Desk, cli: Cli) -> None:
    host = desk.site.host()
    for number, folder in enumerate(("News/World", "News", "")):
        page = desk.site.page("one", path=f"/{number}", host=host)
        cli(
            "feeds",
            "add",
            page.url,
            "--exact",
            "--no-wait",
            "--id",
            f"f{number}",
            "--folder",
            folder,
        )
    found = {
        folder: [each["id"] for each in cli.json("feeds", "ls", "--folder", folder)["feeds"]]
        for folder in ("News", "News/World", "", "Other")
    }
    assert found == {"News": ["f0", "f1"], "News/World": ["f0"], "": ["f2"], "Other": []}
    assert cli.json("feeds", "refresh", "--folder", "", "--no-wait")["total"] == 1

    def feeds_of_articles() -> list[str]:
        items = cli.json("feeds", "articles", "--folder", "")["items"]
        return [each["feed_id"] for each in items]

    assert eventually(feeds_of_articles) == ["f2"]


# ---------------------------------------------------------------------- names


def test_a_feed_is_known_by_part_of_its_id_its_title_and_its_address(desk: Desk, cli: Cli) -> None:
    page, other = desk.site.page("one"), desk.site.page("two")
    first = add(cli, page, "--title", "A long Title", "--exact")
    second = add(cli, other, "--title", "Another", "--exact")
    for said in (first["id"][:8], first["id"][-6:], "a long title", page.url):
        assert cli.json("feeds", "show", said)["id"] == first["id"]
    cli("feeds", "edit", second["id"], "--title", "A long Title")
    refused = cli.refuses("feeds", "show", "A long Title")
    assert first["id"] in refused
    assert second["id"] in refused
    assert "there is no feed 'nobody'; `headway feeds` lists them" in cli.refuses(
        "feeds", "show", "nobody"
    )


def test_a_short_name_is_that_of_one_feed_alone() -> None:
    imported = [f"3f2a91c08d7e6b5a-{number:05}" for number in range(3)]
    made_up = ["31f03a71-6ab8-41a1-bd07-a9ea50d4dfe7", "31f03a71-0000-41a1-bd07-a9ea50d00001"]
    names = short_names([*imported, *made_up, "hn"])
    assert names["hn"] == "hn"
    assert [names[each] for each in imported] == ["00000", "a-00001", "00002"]
    assert names[made_up[0]] == "31f03a71-6"
    assert len(set(names.values())) == len(names)
    assert not any(each.startswith("-") for each in names.values())


# ---------------------------------------------------------------------- refreshing


def test_a_refresh_says_what_it_has_found(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one")
    id = add(cli, page, "--exact")["id"]
    page.publish("one", "two", "three")
    said = cli("feeds", "refresh", id)
    assert said.code == 0
    assert said.out.startswith("1 of 1, 2 new, in ")
    round = cli.json("feeds", "refresh", "--all")
    assert (round["status"], round["done"], round["new_count"]) == ("finished", 1, 0)
    assert "1 of 1, 2 new" in cli("feeds", "rounds").out
    assert "1 of 1, 0 new, in " in cli("feeds", "rounds", round["id"]).out
    assert "there is no round 'x'" in cli.refuses("feeds", "rounds", "x")


def test_one_that_fails_is_named_and_the_others_go_on(desk: Desk, cli: Cli) -> None:
    good, bad = desk.site.page("one"), desk.site.page()
    bad.says = answers(b"", 404)
    add(cli, good, "--exact", "--folder", "News")
    add(cli, bad, "--exact", "--title", "The bad one", "--folder", "News")
    said = cli("feeds", "refresh", "--folder", "News")
    assert said.code == 1
    assert said.out.startswith("2 of 2, 0 new, 1 failed, in ")
    assert "The bad one  failed" in said.out
    assert "answered 404 Not Found; check the address" in said.out


def test_nobody_has_to_wait_for_a_refresh(desk: Desk, cli: Cli) -> None:
    id = add(cli, desk.site.page("one"), "--exact")["id"]
    said = cli("feeds", "refresh", id, "--no-wait")
    assert said.out == "1 feed asked for\n"
    round = said.err.split("`headway feeds rounds ")[1].split("`")[0]
    eventually(lambda: cli.json("feeds", "rounds", round, "--no-wait")["status"] == "finished")
    cli("feeds", "pause", id)
    assert "it is paused; resume it first" in cli("feeds", "refresh", "--all").out
    assert "nothing to refresh" in cli("feeds", "refresh", "--all", "--no-wait").out


def test_whoever_leaves_is_told_that_it_goes_on(
    desk: Desk, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = add(cli, desk.site.page("one"), "--exact")["id"]

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(feed_rounds, "_followed", leave)
    said = cli("feeds", "refresh", id)
    assert (said.code, said.out) == (130, "")
    assert said.err.startswith("it goes on; `headway feeds rounds ")


def test_show_says_why_a_feed_waits(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("one")
    id = add(cli, page, "--exact")["id"]
    page.says = answers(b"", 429, Retry_After="3600")
    cli("feeds", "refresh", id, "--no-wait")
    eventually(lambda: cli.json("feeds", "show", id)["error"])
    said = cli("feeds", "show", id).out
    assert "answered 429 Too Many Requests" in said
    assert "at upstream:" in said


def test_the_line_of_a_round_names_who_keeps_everybody_waiting() -> None:
    item = {"feed_id": "f", "title": "A blog whose title is very long", "state": "waiting",
            "wait_reason": "waits at upstream:x.com: paced", "eta": None}  # fmt: skip
    round = {"text": "38 of 40, 12 new", "waiting": 2, "items": [item]}
    said = "38 of 40, 12 new; A blog whose title is v…: at upstream:x.com: paced"
    assert feed_layouts.round_words(round) == said
    assert feed_layouts.round_words(round | {"waiting": 20}) == "38 of 40, 12 new"


# ---------------------------------------------------------------------- lists


def test_a_list_comes_in_and_goes_out(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    pages = [desk.site.page("one", "two") for _ in range(3)]
    listed = tmp_path / "list.opml"
    listed.write_text(opml(*(page.url for page in pages)))
    said = cli("feeds", "import", str(listed), "--folder", "From", "--every", "1h")
    assert said.code == 0
    assert said.out.startswith("3 feeds, 3 fetched, in ")
    found = cli.json("feeds")["feeds"]
    assert {each["folder"] for each in found} == {"From/Old"}
    assert {each["refresh_interval"] for each in found} == {60}
    out = tmp_path / "out.opml"
    assert cli("feeds", "export", str(out)).out == f"exported 3 feeds to {out}\n"
    assert out.stat().st_mode & 0o077 == 0  # an address may have a secret in it
    said_when = re.compile("<dateCreated>.*</dateCreated>")
    listed_now = said_when.sub("", out.read_text())
    assert said_when.sub("", cli("feeds", "export").out) == listed_now
    assert said_when.sub("", cli.json("feeds", "export")["opml"]) == listed_now
    again = cli.json("feeds", "import", str(out))
    assert (again["added"], again["duplicates"]) == (0, 3)


def test_a_list_from_stdin_and_what_is_not_taken_of_it(
    desk: Desk, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def type_in(text: str) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    type_in(opml(desk.site.page("one").url, "ftp://blog.example/feed", "http://10.1.2.3/feed"))
    said = cli("feeds", "import", "-")
    assert said.code == 1
    assert "3 feeds, 1 fetched, 2 not added" in said.out
    assert "ftp://blog.example/feed  not added" in said.out
    assert "10.1.2.3" in said.out
    type_in("<html></html>")
    assert "This is no OPML" in cli.refuses("feeds", "import", "-")
    assert "cannot be read" in cli.refuses("feeds", "import", "nowhere.opml")
    assert "cannot be written" in cli.refuses("feeds", "export", "no/where.opml")


# ---------------------------------------------------------------------- articles


def test_articles_are_listed_searched_and_marked(desk: Desk, cli: Cli) -> None:
    page = desk.site.page("cats", "dogs", "mice")
    id = add(cli, page, "--exact", "--title", "Animals")["id"]
    listed = cli("feeds", "articles").out
    assert "Animals" in listed
    assert "https://blog.example/cats" in listed
    (found,) = cli.json("feeds", "articles", "--search", "about dog*")["items"]
    assert found["title"] == "dogs"
    number = str(found["id"])
    assert cli("feeds", "star", number).out == "1 article is starred now\n"
    assert cli("feeds", "read", number).out == "1 article is read now\n"
    assert cli("feeds", "read", number).out == "0 articles are read now, 1 were before\n"
    assert cli.json("feeds", "articles", "--starred")["items"][0]["id"] == found["id"]
    assert cli.json("feeds", "articles", "--unread", "--feed", id)["total"] == 2
    assert "★" in cli("feeds", "articles", "--search", "dogs").out
    cut = cli("feeds", "articles", "-n", "1").out
    assert "and 2 more; see them with --limit" in cut
    cli("feeds", "unread", number)
    cli("feeds", "unstar", number)
    assert cli("feeds", "articles", "--starred").out == "no articles\n"
    assert cli("feeds", "mark-read", "--feed", "Animals").out == "3 articles are read now\n"
    assert cli.json("feeds", "mark-read", "--all")["changed"] == 0


def test_more_articles_than_one_page_has(desk: Desk, cli: Cli) -> None:
    add(cli, desk.site.page(*(f"a{number}" for number in range(230))), "--exact")
    found = cli.json("feeds", "articles", "--limit", "210")
    assert len({each["id"] for each in found["items"]}) == found["count"] == 210
    assert found["total"] == 230


def test_articles_that_are_not_there_are_counted(desk: Desk, cli: Cli) -> None:
    add(cli, desk.site.page("one"), "--exact")
    number = cli.json("feeds", "articles")["items"][0]["id"]
    said = cli("feeds", "read", str(number), "999999999")
    assert said.code == 1
    assert said.out == "1 article is read now\n"
    assert said.err == "there are no such articles: 1 of 2\n"


# ---------------------------------------------------------------------- rules


def test_rules_are_tried_added_applied_and_removed(desk: Desk, cli: Cli) -> None:
    add(cli, desk.site.page("cats", "sponsored", "dogs"), "--exact", "--title", "Animals")
    tried = cli("feeds", "rules", "try", "--if", "title is sponsored").out
    assert "sponsored" in tried
    assert "1 of the 3 newest articles" in tried
    added = cli("feeds", "rules", "add", "adverts", "--do", "drop", "--if",
                "title contains Sponsored", "--feed", "Animals").out  # fmt: skip
    assert "title contains 'Sponsored'" in added
    assert "Animals" in added
    listed = cli("feeds", "rules").out
    assert "adverts" in listed
    assert cli("feeds", "rules", "ls").out == listed
    assert cli.json("feeds", "rules", "try", "adverts")["matched"] == 1
    assert cli("feeds", "rules", "apply", "adverts").out == "adverts: 1 article of 3, 1 changed\n"
    assert cli.json("feeds", "articles")["total"] == 2
    assert cli("feeds", "rules", "rm", "adverts").out == "rule adverts is removed\n"
    assert "there is no rule 'adverts'" in cli.refuses("feeds", "rules", "rm", "adverts")
    assert "every article" in cli.refuses("feeds", "rules", "add", "all", "--do", "drop")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("title contains rust and more", ("title", "contains", "rust and more")),
        ("author is Somebody", ("author", "is", "Somebody")),
        ("lacks trust", ("any", "lacks", "trust")),
        ("rust", ("any", "contains", "rust")),
        ("title page", ("any", "contains", "title page")),
    ],
)
def test_a_condition_reads_like_a_sentence(said: str, meant: tuple[str, str, str]) -> None:
    found = condition_of(said)
    assert (found["field"], found["test"], found["text"]) == meant


# ---------------------------------------------------------------------- who may, and where


def test_feeds_are_those_of_ones_tenant(
    desk: Desk, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    id = add(cli, desk.site.page("one"), "--exact")["id"]
    other = cli_of(desk, capsys, new_name("tenant"))
    assert other.json("feeds")["feeds"] == []
    assert "there is no feed" in other.refuses("feeds", "show", id)
    looker = cli_of(desk, capsys, new_name("tenant"), "read")
    assert looker("feeds").code == 0
    assert "submit" in looker.refuses("feeds", "add", ELSEWHERE, "--exact")
    stranger = Cli(capsys, ("--server", desk.server.url))
    assert "wants a valid token" in stranger.refuses("feeds")
    assert "wants a valid token" in stranger.refuses("feeds", "export")
    nowhere = Cli(capsys, ("--server", "http://127.0.0.1:9"))
    assert "cannot be reached" in nowhere.refuses("feeds", "export")


def test_it_fits_into_80_columns(
    desk: Desk, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "80")
    bad = desk.site.page()
    bad.says = answers(b"", 404)
    add(
        cli,
        desk.site.page("a word " * 30),
        "--exact",
        "--title",
        "A title " * 12,
        "--folder",
        "F" * 90,
    )
    add(cli, bad, "--exact", "--title", "Another title " * 7)
    cli("feeds", "rules", "add", "N" * 60, "--do", "read", "--if", "word " * 20)
    for words in (("list",), ("articles",), ("rounds",), ("rules",), ("show", "a title " * 12),
                  ("rules", "try", "--if", "word"), ("discover", bad.url + "?"),
                  ("refresh", "--all")):  # fmt: skip
        said = cli("feeds", *words)
        assert max(map(len, said.out.splitlines()), default=0) <= 80, said.out


def test_without_a_server_one_may_look_and_ask_but_nothing_is_fetched(
    offline: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = offline.refuses("feeds", "add", "blog.example")
    assert "no server runs on " in said
    assert "--exact" in said
    assert "only a server asks sites" in offline.refuses("feeds", "discover", "blog.example")
    made = offline("feeds", "add", ELSEWHERE, "--exact", "--id", "blog").out
    assert made == "blog.example is added as blog: it is fetched when a server runs\n"
    assert offline.json("feeds", "show", "blog")["task"] is None
    refreshed = offline("feeds", "refresh", "blog")
    assert refreshed.code == 0
    assert "nothing is fetched while no server runs" in refreshed.err
    text = opml("https://other.example/feed")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    imported = offline("feeds", "import", "-", "--json")
    assert json.loads(imported.out)["total"] == 1
    offline("feeds", "rules", "add", "all", "--if", "x", "--do", "read")
    assert "it runs when a server does" in offline("feeds", "rules", "apply", "all").out
    assert ELSEWHERE in offline("feeds", "export").out
    assert offline("feeds", "articles").out == "no articles\n"
    assert offline("feeds", "rm", "blog", "--yes").code == 0
