"""A rule on what is there already: which articles it is about, and the job that does as it says.

Both look at a tenant's entries from the newest on, a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.marking import AT_ONCE, DROP_UNSTARRED, Marks, in_parts, mark
from headway.apps.feeds.parsing.sanitising import html_as_text
from headway.apps.feeds.register import Register
from headway.apps.feeds.rules import Readable, Rule, looks_at_text, matches, readable
from headway.apps.feeds.ruling import Ruling
from headway.core import RetryPolicy
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.store import Store

APPLY = "feeds.apply-rule"
# It reads and writes the store, and can be done again at any time.
POLICY = RetryPolicy(timeout_s=3_600, retries=20, delay_s=1, growth=2, max_lost=1_000)
CHUNK = 200  # entries in one question
BEYOND = 1e300  # no article is from after this

SELECT = (
    "select e.id, e.feed, e.at, e.is_read, e.is_starred, a.title, a.author, a.link, a.categories, "
    "{} from feed_entries e join feed_articles a on a.id = e.article "
    "where e.tenant = ? and (e.at, e.id) < (?, ?) order by e.at desc, e.id desc limit ?"
)
TEXT = {True: "coalesce(a.content, a.summary, '')", False: "''"}


class Seen(NamedTuple):
    """An article as a tenant has it."""

    id: int
    feed: str
    at: float
    is_read: bool
    is_starred: bool
    title: str | None
    link: str | None
    text: Readable


def newest_first(
    store: Store, tenant: str, rule: Rule, size: int = CHUNK
) -> Iterator[list[Seen]]:  # fmt: skip
    """All that a tenant has, in parts of this size. Texts are read if the rule looks at them."""
    at, last = BEYOND, 0
    query = SELECT.format(TEXT[looks_at_text(rule)])
    while rows := store.rows(query, (tenant, at, last, size)):
        yield [_seen(*row) for row in rows]
        last, at = rows[-1][0], rows[-1][2]


def matching(rule: Rule, seen: list[Seen], folders: dict[str, str]) -> list[Seen]:
    """Those that a rule is about. `folders`: in which one each feed is."""
    return [
        each for each in seen if matches(rule, each.feed, folders.get(each.feed, ""), each.text)
    ]


def folders_of(register: Register, tenant: str) -> dict[str, str]:
    return {each.id: each.folder for each in register.of_tenant(tenant)}


class Applier:
    def __init__(self, store: Store, register: Register, ruling: Ruling) -> None:
        self._store = store
        self._register = register
        self._ruling = ruling
        self.brain: Brain  # from the moment that an engine is about to start

    def apply(self, tenant: str, rule: str) -> dict[str, Any]:
        """The job."""
        try:
            wanted = self._ruling.get(tenant, rule).rule
        except KeyError:
            return {"looked_at": 0, "matched": 0, "changed": 0, "error": "the rule is gone"}
        looked_at = matched = changed = 0
        for seen in newest_first(self._store, tenant, wanted):
            job.check()
            found = matching(wanted, seen, folders_of(self._register, tenant))
            looked_at += len(seen)
            matched += len(found)
            changed += self._act(wanted, tenant, found)
            job.progress(looked_at, note=f"{matched} matched")
        if "drop" in wanted.actions and changed:
            job.with_end(self._register.tidy)
        return {"looked_at": looked_at, "matched": matched, "changed": changed}

    def _act(self, rule: Rule, tenant: str, found: list[Seen]) -> int:
        """How many are not as they were."""
        if "drop" in rule.actions:
            gone = [(tenant, each.id) for each in found if not each.is_starred]
            for some in in_parts(gone, AT_ONCE):
                self._store.write([(DROP_UNSTARRED, some)])
            return len(gone)
        read, star = "read" in rule.actions, "star" in rule.actions
        wrong = [
            each.id
            for each in found
            if (read and not each.is_read) or (star and not each.is_starred)
        ]
        marks = Marks(True if read else None, True if star else None)
        mark(self._store, tenant, wrong, marks, self.brain.clock.now())
        return len(wrong)


def _seen(
    id: int, feed: str, at: float, is_read: int, is_starred: int, title: str | None,
    author: str | None, link: str | None, categories: str, html: str,
) -> Seen:  # fmt: skip
    text = readable(
        title=title, author=author, link=link, categories=msgspec.json.decode(categories),
        text=html_as_text(html),
    )  # fmt: skip
    return Seen(id, feed, at, bool(is_read), bool(is_starred), title, link, text)
