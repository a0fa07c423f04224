"""What nobody needs any more: articles that are read and old, those that nobody can see, and what
is said about refreshes of long ago. What is unread or starred stays.

An article that is still in the document of its source stays, too, though nobody has it any more:
else it would come back as new, and somebody who subscribes tomorrow would miss it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from headway.apps.feeds.articles import drop_read, pages
from headway.apps.feeds.register import Register
from headway.apps.feeds.round_rows import DROP_ITEMS_OF_ROUND, DROP_ROUND
from headway.apps.feeds.storing import DAY_S, SHARED, documents
from headway.apps.feeds.tables import DROP_DOCUMENT, WHOLE
from headway.core import RetryPolicy, State
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.store import Store
from headway.store.tables import Table, Write

# It can be stopped and done again at any time.
RULES = RetryPolicy(timeout_s=3_600, retries=20, delay_s=60, growth=2, max_lost=1_000)
AT_ONCE = 1_000  # rows in one transaction
ROUNDS_S = 30 * DAY_S  # that are kept of rounds that have ended

LONELY_ENTRIES = (
    "select e.id from feed_entries e where e.id > ? "
    "and not exists (select 1 from feed_articles a where a.id = e.article) order by e.id limit ?"
)
LONELY_ARTICLES = (
    "select a.id, a.source, a.owner, a.identity, a.first_seen_at, a.changed_at "
    "from feed_articles a where a.id > ? "
    "and not exists (select 1 from feed_entries e where e.article = a.id) order by a.id limit ?"
)
LONELY_DOCUMENTS = (
    "select d.source from feed_documents d where d.source > ? "
    "and not exists (select 1 from feed_sources s where s.id = d.source) order by d.source limit ?"
)
OLD_ROUNDS = "select id from feed_rounds where finished_at < ? limit ?"

DROP_ENTRY = Table("feed_entries", {"id": WHOLE}, ("id",)).drop()
# A row is (article, source). Perhaps somebody has it again, or it has moved to another source.
DROP_ARTICLE = Write(
    sqlite="delete from feed_articles where (id, source) in (select given.value ->> 0, "
    "given.value ->> 1 from jsonb_each(?1) as given) "
    "and not exists (select 1 from feed_entries where article = feed_articles.id)",
    postgres="delete from feed_articles as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.id = (given.cells ->> 0)::bigint and kept.source = (given.cells ->> 1)::bigint "
    "and not exists (select 1 from feed_entries where article = kept.id)",
    types=(WHOLE, WHOLE),
    name="articles that nobody has",
)
# A row is (article), which is gone.
DROP_SEARCH = Write(
    sqlite="delete from feed_search where rowid in (select given.value ->> 0 from jsonb_each(?1) "
    "as given where not exists (select 1 from feed_articles where id = given.value ->> 0))",
    postgres="delete from feed_search as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.article = (given.cells ->> 0)::bigint "
    "and not exists (select 1 from feed_articles where id = kept.article)",
    types=(WHOLE,),
    name="words of articles that are gone",
)


class Lonely(NamedTuple):
    """An article that no feed has."""

    id: int
    source: int
    owner: str
    identity: str
    first_seen_at: float
    changed_at: float


class Tidier:
    def __init__(self, store: Store, register: Register, keep_days: float) -> None:
        self._store = store
        self._register = register
        self._keep_days = keep_days
        self._next_at = 0.0
        self.brain: Brain  # from the moment that an engine is about to start

    def tidy(self) -> dict[str, int]:
        """The job `feeds.tidy`: each day on which any feed is refreshed, and when one is gone."""
        now = self.brain.clock.now()
        read = 0
        if self._keep_days:
            read = drop_read(self._store, self._old(now), note=_note("entries"))
        entries = self._drop_lonely_entries()
        articles = sum(self._drop_articles(now))
        for some in pages(self._store, LONELY_DOCUMENTS, ()):
            self._store.write([(DROP_DOCUMENT, some)])
        while rounds := self._store.rows(OLD_ROUNDS, (now - ROUNDS_S, AT_ONCE)):
            self._store.write([(DROP_ITEMS_OF_ROUND, rounds), (DROP_ROUND, rounds)])
        job.with_end(self._register.forget_guests)
        return {"entries": read + entries, "articles": articles}

    def heard(self, source: int, state: State, new: int, error: str, now: float) -> None:
        """In the turn in which a run has ended: what comes today will be old one day."""
        if now >= self._next_at:
            self._next_at = now + DAY_S
            self._register.tidy(now, after_s=DAY_S)

    # ------------------------------------------------------------------ how

    def _drop_lonely_entries(self) -> int:
        count = 0
        for some in pages(self._store, LONELY_ENTRIES, ()):
            self._store.write([(DROP_ENTRY, some)])
            count += len(some)
            job.check()
        return count

    def _old(self, now: float) -> float:
        return now - self._keep_days * DAY_S

    def _drop_articles(self, now: float) -> Iterator[int]:
        """How many of them, in parts."""
        note = _note("articles")
        total = 0
        for rows in pages(self._store, LONELY_ARTICLES, ()):
            gone = list(self._needless(list(map(Lonely._make, rows)), now))
            if gone:
                self._store.write([
                    (DROP_ARTICLE, [(each.id, each.source) for each in gone]),
                    (DROP_SEARCH, [(each.id,) for each in gone]),
                ])  # fmt: skip
                yield len(gone)
            total += len(gone)
            note(total)

    def _needless(self, articles: list[Lonely], now: float) -> Iterator[Lonely]:
        read = documents(self._store, list({each.source for each in articles}))
        for each in articles:
            if each.source not in self._register.sources:
                yield each
            elif not self._keep_days:
                continue
            elif each.owner != SHARED:  # somebody's own, which clients may still send
                if each.changed_at < self._old(now):
                    yield each
            elif each.first_seen_at < self._old(now) and each.source in read:
                document = read[each.source]
                if not document.has(each.identity, now):
                    yield each


def _note(what: str) -> partial[None]:
    return partial(_say, what)


def _say(what: str, count: int) -> None:
    job.progress(count, note=f"{count} {what} removed")
