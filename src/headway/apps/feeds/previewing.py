"""Looking at an address that somebody has typed: whether it is a feed, what is in it, and which
feeds its site has. Nothing is stored.

Each request waits for its turn at the site, like any other. So a look has a limit of time, there
are only so many at once, and what was found until then is what is answered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from headway.apps.feeds.discovery import common_addresses
from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.parsing import Candidate, FeedUnreadable, NotAFeed, ParsedFeed
from headway.errors import HeadwayError
from headway.net.urls import host_of, plain_url

LOOK_S = 30.0  # for one address
DISCOVERY_S = 25.0  # for a site
AT_ONCE = 20
AT_ONCE_PER_TENANT = 4
MOST_CHECKED = 3  # of the feeds that a page names
MOST_GUESSED = 8  # addresses where a page that names none may have one

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FEED_SCHEME = re.compile(r"feed:(?://)?(?=https?://)|feed(?=://)", re.IGNORECASE)

# What people are told that it is. All others go by their own name.
_NAMES = {
    Kind.REFUSED: "refused-address",
    Kind.DNS: "unknown-host",
    Kind.NETWORK: "unreachable",
    Kind.TLS: "no-safe-connection",
    Kind.TOO_LONG: "too-large",
    Kind.PUSHBACK: "asked-to-wait",
}
# Where one address of a site fails like this, others would, too.
_HOPELESS = frozenset({
    Kind.REFUSED, Kind.DNS, Kind.NETWORK, Kind.TLS, Kind.TIMED_OUT, Kind.PUSHBACK,
})  # fmt: skip
_NO_TLS = frozenset({Kind.NETWORK, Kind.TLS})


class Unusable(HeadwayError):
    """There is no feed that can be read. `kind` says why, in a short name."""

    def __init__(self, kind: str, why: str, fetched: Fetched | None = None) -> None:
        super().__init__(why)
        self.kind = kind
        self.fetched = fetched


class OutOfTime(Unusable):
    """The time for this look is over."""


class TooManyLooks(HeadwayError):
    """So many addresses are being looked at already; try again in a moment."""


class Visits(Protocol):
    """What is needed of a `Visitor`."""

    async def look(self, url: str) -> Fetched: ...
    async def parse(self, fetched: Fetched) -> ParsedFeed: ...
    async def feeds_named_in(self, page: Fetched) -> tuple[Candidate, ...]: ...


class Preview(NamedTuple):
    """A feed, and the address to subscribe to."""

    url: str
    feed: ParsedFeed


@dataclass(frozen=True, slots=True)
class Found:
    """An address that may be that of a feed. `valid` None: nobody has looked."""

    url: str
    by: Literal["address", "page", "guess"]
    title: str | None = None
    format: str | None = None
    article_count: int | None = None
    valid: bool | None = None
    error: str | None = None


class Previews:
    """For the loop of one server."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self._under_way: dict[str, int] = {}

    @contextmanager
    def place(self, tenant: str) -> Iterator[None]:
        """One of the places for those who look."""
        own = self._under_way.get(tenant, 0)
        if own >= AT_ONCE_PER_TENANT or sum(self._under_way.values()) >= AT_ONCE:
            raise TooManyLooks(
                f"{own} addresses are being looked at for you, and at most {AT_ONCE_PER_TENANT} "
                f"of yours and {AT_ONCE} of everybody can be; try again in a moment"
            )
        self._under_way[tenant] = own + 1
        try:
            yield
        finally:
            self._under_way[tenant] -= 1
            if not self._under_way[tenant]:
                del self._under_way[tenant]

    async def look(self, typed: str) -> Preview:
        """The feed at this very address. Unusable: there is none."""
        async with _in_time(LOOK_S):
            return await self._read(*await self._first(typed))

    async def discover(self, typed: str) -> list[Found]:
        """Feeds of the site at this address, the best first. Unusable: there are none."""
        found: list[Found] = []
        try:
            async with _in_time(DISCOVERY_S):
                await self._search(typed, found)
        except OutOfTime:
            if all(each.valid is False for each in found):
                raise
        return sorted(found, key=_worse)

    async def best(self, typed: str) -> Found:
        """The feed to subscribe to. Unusable: there is none."""
        first, *_ = await self.discover(typed)
        if first.valid is None:  # the time was over before anybody looked at it
            there = await self.look(first.url)
            return _valid(replace(first, url=there.url), there.feed)
        return first

    # ------------------------------------------------------------------ how

    async def _search(self, typed: str, found: list[Found]) -> None:
        url, fetched = await self._first(typed)
        try:
            there = await self._read(url, fetched)
        except Unusable as error:
            if error.kind != NotAFeed.kind:
                raise
        else:
            found.append(_valid(Found(there.url, "address"), there.feed))
            return
        found += await self._named(fetched)
        for place, each in enumerate(found[:MOST_CHECKED]):
            found[place] = await self._checked(each)
        if any(each.valid is not False for each in found):
            return
        tried = await self._guess(fetched.url, found)
        if not any(each.valid for each in found):
            raise Unusable(
                NotAFeed.kind,
                f"no feed was found at {host_of(url)}: the page names none that can be read, and "
                f"at {tried} other usual places there is none; give the address of the feed",
            )

    async def _named(self, page: Fetched) -> list[Found]:
        try:
            named = await self._visits.feeds_named_in(page)
        except FeedUnreadable:
            return []  # a page that cannot be read names nothing
        found: dict[str, Found] = {}
        for each in named:
            try:
                url = plain_url(each.url)
            except ValueError:
                continue
            found.setdefault(url, Found(url, "page", each.title))
        return list(found.values())

    async def _guess(self, url: str, found: list[Found]) -> int:
        """Look at usual places, until there is one. How many places that were."""
        known = {each.url for each in found}
        places = [each for each in common_addresses(url) if each not in known][:MOST_GUESSED]
        for tried, place in enumerate(places):
            fetched = await self._visits.look(place)
            if fetched.kind in _HOPELESS:
                return tried
            if not fetched.went_well:
                continue
            try:
                there = await self._read(place, fetched)
            except Unusable:
                continue  # often a page that says, with status 200, that nothing is there
            found.append(_valid(Found(there.url, "guess"), there.feed))
            return tried
        return len(places)

    async def _checked(self, each: Found) -> Found:
        try:
            there = await self._read(each.url, await self._fetched(each.url))
        except Unusable as error:
            return replace(each, valid=False, error=str(error))
        return _valid(replace(each, url=there.url), there.feed)

    async def _first(self, typed: str) -> tuple[str, Fetched]:
        """What was typed, as an address, and what is there."""
        url = address_of(typed)
        try:
            return url, await self._fetched(url)
        except Unusable as error:
            without_scheme = _SCHEME.match(typed.strip()) is None
            if not (without_scheme and error.fetched and error.fetched.kind in _NO_TLS):
                raise
            plain = url.replace("https://", "http://", 1)
            try:
                return plain, await self._fetched(plain)
            except Unusable:
                raise error from None  # what is said of the first is what is expected

    async def _fetched(self, url: str) -> Fetched:
        fetched = await self._visits.look(url)
        if not fetched.went_well:
            raise Unusable(kind_name(fetched.kind), fetched.error, fetched)
        return fetched

    async def _read(self, url: str, fetched: Fetched) -> Preview:
        try:
            feed = await self._visits.parse(fetched)
        except FeedUnreadable as error:
            raise Unusable(error.kind, str(error) or type(error).__doc__ or "") from error
        return Preview(plain_url(fetched.moved_to or url), feed)


@asynccontextmanager
async def _in_time(limit_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError:
        raise OutOfTime(
            kind_name(Kind.TIMED_OUT),
            "the site does not answer in time, or others are before you; try again later",
        ) from None


def kind_name(kind: Kind) -> str:
    return _NAMES.get(kind, kind.value.replace("_", "-"))


def address_of(typed: str) -> str:
    """What somebody has typed, as an address. Unusable: it is none."""
    text = _FEED_SCHEME.sub(lambda found: "http" if found.group().lower() == "feed" else "",
                            typed.strip(), count=1)  # fmt: skip
    if _SCHEME.match(text) is None:
        text = f"https://{text}"
    try:
        return plain_url(text)
    except ValueError as error:
        raise Unusable("bad-address", str(error)) from None


def _valid(each: Found, feed: ParsedFeed) -> Found:
    title = feed.title or each.title
    return replace(
        each, title=title, format=feed.format, article_count=len(feed.entries), valid=True
    )


def _worse(each: Found) -> int:
    """Those that were read go first, and those that cannot be last."""
    return {True: 0, None: 1, False: 2}[each.valid]
