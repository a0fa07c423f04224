"""How feeds, articles, rounds and rules look to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time
from typing import Any

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from headway.cli.feed_names import short_names
from headway.cli.printing import WIDE, count, facts, number, plain, rows, table, word
from headway.cli.times import ago, at_and_ago, moment, span

ROOMY, ROOMIER = 100, 130  # columns
STYLES = {"ok": "green", "error": "red", "gone": "bright_black", "moved": "bright_black",
          "paused": "yellow", "new": "blue"}  # fmt: skip
SPARED = ("folder", "fetched")  # where there is little room
FEW = 5  # feeds that are waited for and may be named
SHORT = 24  # characters of a title that is not what somebody wants to know
UNREAD, STARRED = "●", "★"


# ---------------------------------------------------------------------- feeds


def is_due(feed: dict[str, Any]) -> bool:
    at = moment(feed["next_refresh_at"])
    return at is not None and at <= time()


def next_words(feed: dict[str, Any]) -> str:
    if feed["refreshing"]:
        return "now"
    return "soon" if is_due(feed) else ago(feed["next_refresh_at"])


def status_text(feed: dict[str, Any]) -> Text:
    return Text(feed["status"], STYLES.get(feed["status"], ""))


def feed_table(
    feeds: Sequence[dict[str, Any]], everything: Sequence[dict[str, Any]], width: int = WIDE
) -> RenderableType:
    """`everything`: all feeds, so that a short name of one is not that of another."""
    if not feeds:
        none = "no such feeds" if everything else "no feeds; add one with `headway feeds add`"
        return Text(none, style="bright_black")
    names = short_names(each["id"] for each in everything)
    columns: dict[str, list[Any]] = {
        "id": [names.get(each["id"], each["id"]) for each in feeds],
        "title": [each["title"] for each in feeds],
        "folder": [each["folder"] for each in feeds],
        "unread": [f"{each['unread_count']:,}" if each["unread_count"] else "" for each in feeds],
        "status": [status_text(each) for each in feeds],
        "fetched": [ago(each["last_fetched"]) for each in feeds],
        "next": [next_words(each) for each in feeds],
        "what is wrong": [each["error"] or each["note"] or "" for each in feeds],
    }
    if width < ROOMY:
        columns = {name: cells for name, cells in columns.items() if name not in SPARED}
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no empty columns
    found = table(*used, right=("unread",), cut=("title", "folder", "what is wrong"))
    return Group(rows(found, zip(*used.values(), strict=True), ""), Text(""), _sum(feeds))


def _sum(feeds: Sequence[dict[str, Any]]) -> Text:
    words = [count(len(feeds), "feed"), f"{sum(each['unread_count'] for each in feeds):,} unread"]
    wrong = sum(each["status"] == "error" for each in feeds)
    words += [f"{wrong} in trouble"] if wrong else []
    return word(", ".join(words), "bright_black")


def feed_facts(feed: dict[str, Any]) -> RenderableType:
    task = feed.get("task") or {}
    return facts((
        ("feed", feed["id"]), ("title", feed["title"]), ("address", feed["url"]),
        ("site", feed["site_url"]), ("folder", feed["folder"]), ("status", status_text(feed)),
        ("what is wrong", feed["error"]), ("failed in a row", feed["failures"] or None),
        ("note", feed["note"]), ("visited", interval_words(feed)),
        ("articles", f"{feed['article_count']:,}, {feed['unread_count']:,} unread"),
        ("fetched", at_and_ago(feed["last_fetched"])),
        ("tried", at_and_ago(feed["last_tried"])
         if feed["last_tried"] != feed["last_fetched"] else None),
        ("next visit", next_visit(feed)),
        ("waits", (task.get("wait_reason") or "").removeprefix("waits ")),
        ("should start", at_and_ago(task.get("eta"))),
        ("about", feed["description"]), ("language", feed["language"]),
        ("added", at_and_ago(feed["created_at"])),
    ))  # fmt: skip


def next_visit(feed: dict[str, Any]) -> str:
    if feed["refreshing"]:
        return "under way"
    if feed["next_refresh_at"] is None:
        return "none"
    return "as soon as its site allows" if is_due(feed) else at_and_ago(feed["next_refresh_at"])


def interval_words(feed: dict[str, Any]) -> str:
    words = f"every {span(feed['refresh_interval'] * 60)}"
    if not feed["adaptive"]:
        return words
    return f"{words}, adapted to {span(feed['effective_interval'] * 60)}"


def added_words(feed: dict[str, Any], *, served: bool = True) -> Text:
    """What has come of a subscription so far."""
    line = Text(f"{plain(feed['title'])} is added as {plain(feed['id'])}: ")
    if feed["status"] == "ok":
        return line.append(count(feed["article_count"], "article"))
    if feed["error"]:
        return line.append(plain(feed["error"]), "red")
    if not served:
        return line.append("it is fetched when a server runs")
    return line.append("its articles come as soon as its site has answered")


def candidate_table(answer: dict[str, Any]) -> RenderableType:
    found = table("address", "title", "format", "articles", "", right=("articles",),
                  cut=("title", ""))  # fmt: skip
    return rows(
        found,
        (
            (each["url"], each["title"] or "", each["format"] or "",
             number(each["article_count"], ""), _candidate_state(each))
            for each in answer["candidates"]
        ),
        "no feeds",
    )  # fmt: skip


def _candidate_state(each: dict[str, Any]) -> Text:
    if each["valid"]:
        return Text("can be read", "green")
    return word(each["error"], "red") if each["checked"] else word("not looked at", "bright_black")


# ---------------------------------------------------------------------- articles


def article_table(
    answer: dict[str, Any], titles: Mapping[str, str], width: int = WIDE
) -> RenderableType:
    articles = answer["items"]
    columns: dict[str, list[Any]] = {
        "id": [each["id"] for each in articles],
        "": [marks(each) for each in articles],
        "title": [title_text(each) for each in articles],
        "feed": [titles.get(each["feed_id"], each["feed_id"]) for each in articles],
        "appeared": [ago(each["at"]) for each in articles],
        "link": [each["link"] or "" for each in articles],
    }
    if width < ROOMIER:
        del columns["link"]
    if width < ROOMIER and len(set(columns["feed"])) == 1:
        del columns["feed"]
    found = table(*columns, right=("id",), cut=("title", "feed", "link"))
    shown = rows(found, zip(*columns.values(), strict=True), "no articles")
    more = answer["total"] - len(articles)
    if more <= 0 or not articles:
        return shown
    return Group(shown, Text(""), word(f"and {more:,} more; see them with --limit", "bright_black"))


def marks(article: dict[str, Any]) -> Text:
    found = Text("" if article["is_read"] else UNREAD, "blue")
    return found.append(STARRED, "yellow") if article["is_starred"] else found


def title_text(article: dict[str, Any]) -> Text:
    """What is not read is bold, and leads to the page where a terminal can do that."""
    title = plain(article["title"] or article.get("summary") or article["link"] or "(no title)")
    link = plain(article["link"]) if article["link"] else None
    return Text(title, Style(bold=article.get("is_read") is False, link=link))


# ---------------------------------------------------------------------- rounds


def asked_words(asked: dict[str, Any]) -> RenderableType:
    if asked["status"] == "nothing_to_do":
        return _skipped(asked, "there is nothing to refresh")
    words = f"{count(asked['scheduled'] + asked['already_running'], 'feed')} asked for"
    if asked["already_running"]:
        words += f", {asked['already_running']} of them under way already"
    return _skipped(asked, words)


def _skipped(asked: dict[str, Any], words: str) -> RenderableType:
    if not asked["skipped"]:
        return Text(words)
    lines = [f"{words}, {asked['skipped']} left out"]
    lines += [f"  {plain(each['feed_id'])}: {plain(each['why'])}"
              for each in asked["skipped_feeds"]]  # fmt: skip
    return Text("\n".join(lines))


def round_words(round: dict[str, Any]) -> str:
    """How far it is, on one line, and at last who keeps everybody waiting: `38 of 40, 12 new; A
    blog: it is tried again …`.
    """
    words: str = round["text"]
    waits = next((each for each in round["items"] if each["state"] == "waiting"), None)
    if waits is None or not waits["wait_reason"] or round["waiting"] > FEW:
        return words
    at = ago(waits["eta"])
    when = f", {at}" if at.startswith("in ") else ""
    title = plain(waits["title"] or waits["feed_id"])
    short = title if len(title) <= SHORT else f"{title[: SHORT - 1]}…"
    return f"{words}; {short}: {waits['wait_reason'].removeprefix('waits ')}{when}"


def round_facts(round: dict[str, Any]) -> RenderableType:
    took = ""
    if round["finished_at"] is not None:
        took_s = (moment(round["finished_at"]) or 0.0) - (moment(round["created_at"]) or 0.0)
        took = f", in {span(took_s)}"
    parts: list[RenderableType] = [Text(f"{plain(round['text'])}{took}")]
    wrong = table("feed", "", "why", cut=("feed", "why"))
    listed = [
        *((each["title"] or each["feed_id"], _item_state(each["state"]),
           each["error"] or each["wait_reason"] or "") for each in round["items"]),
        *((each["url"], Text("not added", "red"), each["why"])
          for each in round["invalid_feeds"]),
    ]  # fmt: skip
    if listed:
        parts += [Text(""), rows(wrong, listed, "")]
    return Group(*parts)


def _item_state(name: str) -> Text:
    return Text(name, {"failed": "red", "skipped": "yellow"}.get(name, "blue"))


def round_table(answer: dict[str, Any]) -> RenderableType:
    found = table("id", "what", "began", "how far", "", cut=("how far",))
    return rows(
        found,
        (
            (each["id"], each["kind"], ago(each["created_at"]), each["text"],
             "done" if each["status"] == "finished" else f"{each['percent']:g} %")
            for each in answer["items"]
        ),
        "nothing was refreshed or imported yet",
    )  # fmt: skip


# ---------------------------------------------------------------------- rules


def rule_table(answer: dict[str, Any], titles: Mapping[str, str]) -> RenderableType:
    names = short_names(each["id"] for each in answer["items"])
    found = table("id", "name", "if", "where", "does", "", cut=("name", "if", "where"))
    return rows(
        found,
        (
            (names[each["id"]], each["name"], condition_words(each), where_words(each, titles),
             " and ".join(each["actions"]),
             "" if each["enabled"] else Text("off", "bright_black"))
            for each in answer["items"]
        ),
        "no rules; add one with `headway feeds rules add`",
    )  # fmt: skip


def rule_facts(rule: dict[str, Any], titles: Mapping[str, str]) -> RenderableType:
    return facts((
        ("rule", rule["id"]), ("name", rule["name"]), ("place", rule["place"]),
        ("if", condition_words(rule)), ("where", where_words(rule, titles)),
        ("does", " and ".join(rule["actions"])), ("followed", "yes" if rule["enabled"] else "no"),
    ))  # fmt: skip


def condition_words(rule: dict[str, Any]) -> str:
    return " and ".join(
        f"{'it' if each['field'] == 'any' else each['field']} {each['test']} {each['text']!r}"
        for each in rule["conditions"]
    ) or "any article"  # fmt: skip


def where_words(rule: dict[str, Any], titles: Mapping[str, str]) -> str:
    feeds = [titles.get(each, each) for each in rule["feeds"]]
    return ", ".join([*feeds, *(f"{each}/" for each in rule["folders"])]) or "everywhere"


def match_table(answer: dict[str, Any], titles: Mapping[str, str]) -> RenderableType:
    said = f"{answer['matched']} of the {answer['looked_at']} newest articles"
    if not answer["items"]:
        return Text(said)
    found = table("id", "title", "feed", "appeared", right=("id",), cut=("title", "feed"))
    shown = rows(
        found,
        (
            (each["id"], title_text(each), titles.get(each["feed_id"], each["feed_id"]),
             ago(each["published_at"]))
            for each in answer["items"]
        ),
        "",
    )  # fmt: skip
    return Group(shown, Text(""), word(said, "bright_black"))
