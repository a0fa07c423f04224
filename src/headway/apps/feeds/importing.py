"""Lists of subscriptions of a tenant: read from OPML into a round, and written as OPML.

What is still to be added is the payload of a job, and how much of it is taken in stands in the
report of the round, written by the commit that takes it in. So a restart in the middle goes on
with the next feed; nothing is added twice, and nothing is left out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from headway.api.turns import in_turn
from headway.apps.feeds.folders import folder_path
from headway.apps.feeds.model import DEFAULT_INTERVAL_S
from headway.apps.feeds.opml import Subscription as Listed
from headway.apps.feeds.opml import SubscriptionList, write_opml
from headway.apps.feeds.register import Duplicates, Register, wanted_feed
from headway.apps.feeds.round_rows import DONE, IMPORT, WAITING, ItemRow, Report
from headway.apps.feeds.rounds import Round, Rounds
from headway.apps.feeds.scheduling import COUNTED_FOR, LANE
from headway.apps.feeds.settings import FeedSettings
from headway.core import RetryPolicy
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.errors import EngineStopped
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url
from headway.sdk.app import App
from headway.store.records import NewJob

TAKE_IN = "feeds.import"
KEY = "feeds.import:"  # of a job, followed by its round
# It can be gone on with at any time.
RULES = RetryPolicy(timeout_s=600, retries=20, delay_s=1, growth=2, max_lost=1_000)
AT_ONCE = 100  # feeds of one turn, so that nobody waits long for the brain
NAMED = 100  # of what was not added are shown one by one
SLASH_IN_NAME = "-"  # since a slash leads from one folder to the next

Entry = tuple[str, str | None, str]  # address, title, folder


class Importer:
    def __init__(
        self, app: App, register: Register, rounds: Rounds, settings: FeedSettings,
        allowed: Allowed,
    ) -> None:  # fmt: skip
        self._app = app
        self._register = register
        self._rounds = rounds
        self._settings = settings
        self._allowed = allowed
        self.brain: Brain  # from the moment that an engine is about to start

    def begin(
        self, tenant: str, listed: SubscriptionList, now: float, *, folder: str = "",
        interval_s: float = DEFAULT_INTERVAL_S, adaptive: bool = False,
    ) -> Round:  # fmt: skip
        """In the brain's turn. Nothing is added before the commit."""
        feeds = [entry_of(each, folder) for each in listed.subscriptions]
        report = Report(size=len(feeds), duplicates=listed.duplicates, invalid=len(listed.skipped))
        report.invalid_feeds = [
            {"url": url, "why": "this is no address of the web"} for url in listed.skipped[:NAMED]
        ]
        total = len(feeds) + listed.duplicates + len(listed.skipped)
        round = self._rounds.begin(tenant, IMPORT, now, total=total, report=report)
        if not feeds:
            self._rounds.grown(round.id, now)
            return round
        args = {"round": round.id, "feeds": feeds, "interval_s": interval_s, "adaptive": adaptive}
        self.brain.batch.jobs.append(
            NewJob(
                TAKE_IN, msgspec.json.encode(args).decode(), created_at=now, lane=LANE,
                tenant=COUNTED_FOR + tenant,
                key=KEY + round.id,
            )
        )  # fmt: skip
        return round

    async def take_in(
        self, round: str, feeds: list[Entry], interval_s: float, adaptive: bool
    ) -> dict[str, int]:
        """The job."""
        position, added = 0, 0
        while position < len(feeds):
            engine = self._app.engine
            if engine is None:
                raise EngineStopped("the engine has stopped; it goes on when it is back")
            more = {"interval_s": interval_s, "adaptive": adaptive}
            call = partial(self._take_some, round, feeds, more)
            report = await in_turn(engine, call)
            if report is None:
                break  # it has ended meanwhile
            position, added = report.position, report.added
        return {"added": added}

    # ------------------------------------------------------------------ in the brain's turn

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """`JobType.ended`. Also a list that is not taken in whole has an end."""
        round = self._rounds.open.get((change.ticket.key or "").removeprefix(KEY))
        if round is not None and round.growing:
            left = round.report.size - round.report.position
            round.report.position = round.report.size
            round.row = round.row._replace(skipped=round.row.skipped + left)
            self._rounds.add(round, ())
            self._rounds.grown(round.id, now)

    def _take_some(
        self, id: str, feeds: list[Entry], more: dict[str, Any], now: float
    ) -> Report | None:
        round = self._rounds.open.get(id)
        if round is None:
            return None
        # In this very turn: somebody may add others while this one is waited for.
        room = self._settings.max_feeds - len(self._register.of_tenant(round.tenant))
        report = round.report
        items: list[ItemRow] = []
        for entry in feeds[report.position : report.position + AT_ONCE]:
            why = self._add(round, entry, room - len(items), more, items, now)
            report.position += 1
            if why:
                report.invalid += 1
                if len(report.invalid_feeds) < NAMED:
                    report.invalid_feeds.append({"url": entry[0], "why": why})
        report.added += len(items)
        left_out = report.duplicates + report.invalid
        round.row = round.row._replace(skipped=left_out)
        self._rounds.add(round, items)
        if report.position >= len(feeds):
            self._rounds.grown(id, now)
        return report

    def _add(
        self, round: Round, entry: Entry, room: int, more: dict[str, Any], items: list[ItemRow],
        now: float,
    ) -> str:  # fmt: skip
        """Subscribe to one. Why that is not possible, if it is not."""
        url, title, folder = entry
        # A name that sorts as the list does, so that an export has the same order.
        feed = f"{round.id}-{round.report.position:05}"
        try:
            wanted = wanted_feed(feed, url, title=title, folder=folder, **more)
            check_url(wanted.url, self._allowed)
        except (ValueError, Refused) as error:
            return str(error)
        if room <= 0:
            return f"you have {self._settings.max_feeds} feeds, and more are not allowed"
        try:
            (made,) = self._register.subscribe(round.tenant, [wanted], now)
        except Duplicates as error:
            round.report.duplicates += 1
            if len(round.report.duplicate_feeds) < NAMED:
                there = error.found[0][1].id
                round.report.duplicate_feeds.append({"url": url, "feed_id": there})
            return ""
        source = self._register.sources[made.source]
        known = source.fetched_at is not None and not source.has_ended
        if not known and source.tried_at is not None:
            self._register.schedule.want(source, now)  # others wait longer, since it has failed
        items.append(ItemRow(round.id, feed, source.id, DONE if known else WAITING, 0, None))
        return ""


# ---------------------------------------------------------------------- from and to a list


def entry_of(listed: Listed, folder: str = "") -> Entry:
    """What is subscribed to, below this folder. An address is no name: the site will say one."""
    title = None if listed.title == listed.url else listed.title
    names = (name.replace("/", SLASH_IN_NAME) for name in listed.folders)
    return listed.url, title, folder_path(folder, *names)


def export(register: Register, tenant: str, now: float) -> bytes:
    """All feeds of a tenant. From any thread."""
    listed = []
    for each in register.of_tenant(tenant):
        source = register.sources.get(each.source)
        if source is not None:  # it has not gone just now
            folders = tuple(folder_path(each.folder).split("/")) if each.folder else ()
            title = each.title or source.title or source.url
            listed.append(Listed(source.url, title, source.site_link, folders))
    return write_opml(listed, at=datetime.fromtimestamp(now, UTC))
