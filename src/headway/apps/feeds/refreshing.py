"""One visit to a source: fetch, parse, keep, and say how it went.

What the visit found is written in the turn that ends it, together with the next run. A visit that
failed says so at once, also when another attempt follows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from headway.apps.feeds.catalog import Name
from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.model import Source, Status, Subscription, error_text, hints_of, hints_text
from headway.apps.feeds.moving import LEAD_TO_TWINS
from headway.apps.feeds.pacing import Hints, adapted_interval_s
from headway.apps.feeds.parsing import FeedUnreadable, ParsedFeed, ParserDied
from headway.apps.feeds.register import Register
from headway.apps.feeds.rules import RulesOf, Verdict, judge
from headway.apps.feeds.storing import Arrival, Stored, keep
from headway.apps.feeds.tables import ADD_ENTRY, ANNOUNCE, REPOINT_ENTRIES
from headway.core import Outcome, RetryPolicy
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.net.urls import host_of, plain_url
from headway.outcomes import Answered
from headway.store import Store

T = TypeVar("T")

# "120 s limit, 90 s soft": the fetcher gives up after 90. What is pushed back waits at the gate.
RULES = RetryPolicy(
    timeout_s=120.0, retries=3, delay_s=60.0, growth=2.0, max_lost=20, max_pushbacks=100,
)  # fmt: skip
AT_ONCE = 2_000  # entries in one turn; readers beyond that have theirs a moment later
LONGEST_WAIT_S = 7 * 86_400.0  # that a site may ask for
AGAIN_S = 5.0  # until a job is tried again that the stop of this server has interrupted

# A site that is unwell may be better in a minute; one that says no will say so again.
PASSING = frozenset({Kind.SERVER_ERROR, Kind.TIMED_OUT, Kind.DNS, Kind.NETWORK, Kind.BAD_ANSWER})
UNWELL = frozenset({Kind.SERVER_ERROR, Kind.TIMED_OUT, Kind.NETWORK})


class Fetches(Protocol):
    async def __call__(
        self, url: str, *, etag: str | None, modified: str | None, validators_of: str | None,
        subscribers: int,
    ) -> Fetched: ...  # fmt: skip


Parses = Callable[[Fetched], Awaitable[ParsedFeed]]


class InThread(Protocol):
    async def __call__(self, call: Callable[..., T], /, *args: Any) -> T: ...


class Visit(NamedTuple):
    """What came of one."""

    fetched: Fetched
    parsed: ParsedFeed | None = None  # None: nothing has changed, or it cannot be read
    error: str = ""
    stored: Stored = Stored(0)
    verdicts: Mapping[tuple[Name, int], Verdict] = MappingProxyType({})
    adapted_s: float | None = None


class Refresher:
    def __init__(
        self, store: Store, register: Register, fetch: Fetches, parse: Parses, in_thread: InThread,
        rules: RulesOf,
    ) -> None:  # fmt: skip
        self._store = store
        self._register = register
        self._fetch = fetch
        self._parse = parse
        self._in_thread = in_thread
        self._rules = rules
        self.brain: Brain  # from the moment that an engine is about to start

    async def refresh(self, source: int) -> dict[str, Any] | Answered:
        """The job. Its result is that of the contract; who asks adds what it calls the feed."""
        began = perf_counter()
        row = self._register.sources.get(source)
        if row is None:
            return {"success": False, "error": "nobody subscribes to it any more"}
        visit = await self._visit(row)
        if visit is None:
            return Answered(Outcome.returned(after_s=AGAIN_S))
        job.with_end(partial(self._end, source, visit))
        if visit.error:
            return Answered(outcome_of(visit, row.host))
        return {
            "success": True,
            "article_count": visit.stored.entries,
            "new_count": len(visit.stored.arrivals),
            "changed_count": visit.stored.changed,
            "not_modified": visit.parsed is None,
            "duration_ms": round((perf_counter() - began) * 1000),
        }

    async def _visit(self, row: Source) -> Visit | None:
        """None: this server is about to stop."""
        fetched = await self._fetch(
            row.url, etag=row.etag, modified=row.modified, validators_of=row.validators_of,
            subscribers=len(self._register.subscribers(row.id)),
        )  # fmt: skip
        if not fetched.went_well:
            return Visit(fetched, error=fetched.error)
        is_same = fetched.kind is Kind.NOT_MODIFIED or (
            fetched.body_hash == row.body_hash and fetched.moved_to is None
        )
        parsed = None
        if not is_same:
            try:
                parsed = await self._parse(fetched)
            except ParserDied:
                if job.stopping:
                    return None
                return Visit(fetched, error="the process that read the feed has died")
            except FeedUnreadable as error:
                return Visit(fetched, error=str(error))
        return await self._in_thread(self._keep, row, fetched, parsed)

    def _keep(self, row: Source, fetched: Fetched, parsed: ParsedFeed | None) -> Visit:
        """With the store, so in a thread."""
        now = self.brain.clock.now()
        stored = Stored(0) if parsed is None else keep(self._store, row.id, parsed.entries, now)
        subscribers = self._register.subscribers(row.id)
        verdicts = {
            (each.name, arrival.article): self._judged(each, arrival)
            for each in subscribers
            if each.tenant in self._rules
            for arrival in stored.arrivals
        }
        adapted_s = self._adapted_s(row, subscribers, now)
        return Visit(fetched, parsed, "", stored, verdicts, adapted_s)

    def _judged(self, subscription: Subscription, arrival: Arrival) -> Verdict:
        rules = self._rules.get(subscription.tenant, ())
        return judge(rules, subscription.id, subscription.folder, arrival.text)

    def _adapted_s(self, row: Source, subscribers: list[Subscription], now: float) -> float | None:
        bases = [each.interval_s for each in subscribers if each.adaptive]
        if not bases:
            return None
        changes = self._store.rows(
            "select coalesce(published_at, updated_at, first_seen_at) from feed_articles "
            "where source = ? and owner = '' order by id desc limit 100",
            (row.id,),
        )
        base_s = min(bases)
        current_s = row.adapted_s or base_s
        return adapted_interval_s(base_s, current_s, [at for (at,) in changes], now)

    # ------------------------------------------------------------------ in the brain's turn

    def _end(self, source: int, visit: Visit, now: float) -> None:
        """In the commit that ends the attempt."""
        row = self._register.sources.get(source)
        if row is None:
            return  # nobody wants it any more
        if visit.error:
            self._register.put(_after_failure(row, visit, now))
            return
        self._register.put(_after_success(row, visit, now))
        stored = visit.stored
        self._register.schedule.found[source] = len(stored.arrivals)
        if stored.twins:
            self.brain.write(REPOINT_ENTRIES, *stored.twins)
        if stored.arrivals:
            self._lead_here(row)
            self._announce(source, visit, now)
        moved_to = _new_address(visit)
        if moved_to is not None and self._register.move(source, moved_to, now):
            self.brain.write(ANNOUNCE, *((article, 1) for article in stored.articles))

    def _lead_here(self, row: Source) -> None:
        """Who was led here may have some of the articles already, from where he was before."""
        led = [each for each in self._register.subscribers(row.id) if each.led]
        if led:
            self.brain.write(LEAD_TO_TWINS, *((*each.name, row.id) for each in led))

    def _announce(self, source: int, visit: Visit, now: float) -> None:
        arrivals = visit.stored.arrivals
        first_at = min(each.seen_at for each in arrivals)
        rows: list[tuple[Any, ...]] = []
        for each in self._register.subscribers(source):
            if len(rows) >= AT_ONCE and not each.paused:
                self._register.fill(each, now, since=first_at, most=len(arrivals))
                continue
            for arrival in arrivals:
                if each.paused and arrival.seen_at >= (each.paused_at or 0.0):
                    continue  # it is there when he goes on; what was here before is his at once
                verdict = visit.verdicts.get((each.name, arrival.article))
                if verdict is None:  # it was not there a moment ago
                    verdict = self._judged(each, arrival)
                if not verdict.dropped:
                    rows.append(entry_row(each, arrival, verdict, now))
        if rows:
            self.brain.write(ADD_ENTRY, *rows)
        self.brain.write(ANNOUNCE, *((each.article, 1) for each in arrivals))


def entry_row(
    subscription: Subscription, arrival: Arrival, verdict: Verdict, now: float
) -> tuple[Any, ...]:
    return (
        subscription.tenant, subscription.id, arrival.article, arrival.at, now,
        int(verdict.is_read), int(verdict.is_starred), now,
    )  # fmt: skip


def outcome_of(visit: Visit, host: str) -> Outcome:
    """What a visit that failed means for its job, and for the host of its source: nothing, if it
    was another one that said so. That one has heard of it where the redirect was followed.
    """
    fetched = visit.fetched
    error = error_text(visit.error)
    wait_s = _wait_s(fetched)
    is_here = host_of(fetched.url) == host
    if fetched.kind is Kind.PUSHBACK:
        status = fetched.status or 429
        if not is_here:
            return Outcome.failed(error, status=status, retry_after_s=wait_s)
        return Outcome.pushback(status=status, retry_after_s=wait_s, ban=status == 412, error=error)
    passing = fetched.kind in PASSING
    is_unwell = is_here and fetched.kind in UNWELL
    return Outcome.failed(
        error, fatal=not passing, status=fetched.status, upstream_fault=is_unwell
    )  # fmt: skip


def _new_address(visit: Visit) -> str | None:
    """Where a source is from now on, if it has moved and what is there was read."""
    moved_to = visit.fetched.moved_to
    if moved_to is None or visit.parsed is None:
        return None
    try:
        return plain_url(moved_to)
    except ValueError:
        return None  # it can be asked, but nobody could subscribe to it


def _wait_s(fetched: Fetched) -> float | None:
    """How long the site wants to be left alone, if that is a time that can be waited for."""
    wait_s = fetched.retry_after_s
    return None if wait_s is None or not wait_s >= 0 else min(wait_s, LONGEST_WAIT_S)


def _after_failure(row: Source, visit: Visit, now: float) -> Source:
    fetched = visit.fetched
    wait_s = _wait_s(fetched)
    retry_at = None if wait_s is None else now + wait_s
    gone = fetched.kind is Kind.GONE
    hints = replace(hints_of(row.hints), retry_at=retry_at, fresh_until=None)
    return row._replace(
        status=(Status.GONE if gone else Status.ERROR).value, error=error_text(visit.error),
        tried_at=now, hints=hints_text(hints),
    )  # fmt: skip


def _after_success(row: Source, visit: Visit, now: float) -> Source:
    fetched, parsed = visit.fetched, visit.parsed
    wishes = hints_of(row.hints)
    row = row._replace(
        status=Status.OK.value, error=None, failures=0, tried_at=now, fetched_at=now,
        adapted_s=visit.adapted_s, etag=fetched.etag, modified=fetched.modified,
        validators_of=fetched.url,
    )  # fmt: skip
    if parsed is not None:
        ttl_s = None if parsed.ttl_minutes is None else parsed.ttl_minutes * 60.0
        wishes = Hints(ttl_s=ttl_s, skip_hours=parsed.skip_hours, skip_days=parsed.skip_days)
        row = row._replace(
            title=parsed.title, site_link=parsed.site_link, description=parsed.description,
            language=parsed.language, body_hash=fetched.body_hash,
        )  # fmt: skip
    elif fetched.moved_to is not None:
        row = row._replace(etag=None, modified=None)  # so that it is read there the next time
    hints = replace(wishes, fresh_until=fetched.fresh_until, retry_at=None)
    return row._replace(hints=hints_text(hints))
