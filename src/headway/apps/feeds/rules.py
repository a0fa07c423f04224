"""What tenants want done with articles as they come: mark as read, star, or drop.

A rule looks for plain text, never for a pattern: what a tenant writes here must not cost more than
reading the article.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from headway.apps.feeds.folders import is_below

Field = Literal["any", "title", "author", "link", "category", "text"]
Test = Literal["contains", "lacks", "is"]
Action = Literal["read", "star", "drop"]

MAX_RULES = 100  # of one tenant
MAX_CONDITIONS = 20  # of one rule
MAX_TEXT = 200  # characters of one condition
MAX_TEXT_LOOKED_AT = 100_000  # characters of one article


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`is` compares all of it, the others look inside. Capitals do not matter."""

    text: str
    field: Field = "any"
    test: Test = "contains"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All conditions must hold. `feeds` and `folders`: only there; both empty: everywhere."""

    name: str
    actions: tuple[Action, ...]
    conditions: tuple[Condition, ...]
    feeds: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    enabled: bool = True


class Readable(NamedTuple):
    """Of an article, what rules look at. All of it is in small letters, see `readable`."""

    title: str
    author: str
    link: str
    categories: tuple[str, ...]
    text: str


class Verdict(NamedTuple):
    """What becomes of an article for one tenant."""

    is_read: bool = False
    is_starred: bool = False
    dropped: bool = False


PLAIN = Verdict()


def readable(
    *, title: str | None, author: str | None, link: str | None, categories: Iterable[str], text: str
) -> Readable:
    return Readable(
        (title or "").casefold(), (author or "").casefold(), (link or "").casefold(),
        tuple(each.casefold() for each in categories), text[:MAX_TEXT_LOOKED_AT].casefold(),
    )  # fmt: skip


def fault_in(rule: Rule) -> str | None:
    """Why nobody can want this rule; None: it makes sense."""
    if not rule.actions:
        return "say what the rule does: read, star or drop"
    if "star" in rule.actions and "drop" in rule.actions:
        return "a star keeps an article, so choose star or drop"
    if not rule.conditions and not rule.feeds and not rule.folders:
        return "this would be about every article; name a condition, a feed or a folder"
    if any(not each.text.strip() for each in rule.conditions):
        return "a condition looks for some text, not for spaces alone"
    return None


def looks_at_text(rule: Rule) -> bool:
    """Whether all of an article must be read for it; most rules are about titles."""
    return any(each.field in ("any", "text") for each in rule.conditions)


def matches(rule: Rule, feed: str, folder: str, article: Readable) -> bool:
    """Whether a rule is about this article, also while it is switched off."""
    return _is_there(rule, feed, folder) and _holds(rule, article)


def judge(rules: Iterable[Rule], feed: str, folder: str, article: Readable) -> Verdict:
    """What the rules that hold for this feed say together. A star keeps what another rule would
    drop.
    """
    said: set[str] = set()
    for rule in rules:
        if rule.enabled and matches(rule, feed, folder, article):
            said.update(rule.actions)
    if not said:
        return PLAIN
    starred = "star" in said
    return Verdict("read" in said, starred, "drop" in said and not starred)


def _is_there(rule: Rule, feed: str, folder: str) -> bool:
    if not rule.feeds and not rule.folders:
        return True
    inside = any(is_below(folder, each) for each in rule.folders)
    return feed in rule.feeds or inside


def _holds(rule: Rule, article: Readable) -> bool:
    return all(_fits(each, article) for each in rule.conditions)


def _fits(condition: Condition, article: Readable) -> bool:
    wanted = condition.text.casefold()
    places = _places(condition.field, article)
    match condition.test:
        case "contains":
            return any(wanted in place for place in places)
        case "lacks":
            return all(wanted not in place for place in places)
        case "is":
            return any(wanted.strip() == place.strip() for place in places)


def _places(field: Field, article: Readable) -> tuple[str, ...]:
    match field:
        case "any":
            return article.title, article.author, article.link, *article.categories, article.text
        case "title":
            return (article.title,)
        case "author":
            return (article.author,)
        case "link":
            return (article.link,)
        case "category":
            return article.categories
        case "text":
            return (article.text,)


RulesOf = Mapping[str, tuple[Rule, ...]]  # by tenant, in their order
