"""Getting one video: `download`.

What was got is moved into the library first, and written down in the commit that ends the job. If
the server dies in between, the next attempt finds the files where they belong, and only writes it
down. A file that was begun is gone on with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any, NamedTuple

import msgspec

from headway.api.turns import in_turn
from headway.apps.media import items
from headway.apps.media.fetcher.filters import Filters
from headway.apps.media.fetcher.protocol import FailureKind, Known, Task
from headway.apps.media.jobs import ITEM, LIBRARY, subscription_of
from headway.apps.media.judging import in_words
from headway.apps.media.library.errors import LibraryError
from headway.apps.media.library.moving import PRIVATE
from headway.apps.media.library.naming import DEFAULT, Facts, Template
from headway.apps.media.library.publishing import Published, find_published, publish
from headway.apps.media.library.root import Library
from headway.apps.media.listing import InThread, filters_of
from headway.apps.media.model import Item, State, Subscription, error_text
from headway.apps.media.ordering import formats_for
from headway.apps.media.presets import site_of
from headway.apps.media.register import Register
from headway.apps.media.running import Answer, Failure
from headway.apps.media.settings import MB, MediaSettings
from headway.apps.media.tables import ADD_ITEM, BLAME_ITEM, END_ITEM, FREE_TWINS, KEEP_ITEM
from headway.apps.media.visiting import Visitor, check_key, check_site
from headway.core import Outcome
from headway.core import State as JobState
from headway.core.change import Change
from headway.core.kinds import TOOL
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.engine.hands.processes import ProgramTimeout
from headway.engine.tickets import spec_of
from headway.outcomes import Answered, Cancel
from headway.store import Store

CLOSED_S = 300.0  # for which downloads wait if the library is away or full
BUSY_S = 60.0  # until a second job for the same video looks whether it is there
AGAIN_S = 1.0  # a job that could not be done waits at the gate of the library
GREW_BYTES = 1_000_000  # of a file, after which its time-out is no failure
SINGLES = "single videos"  # the directory of what nobody subscribes to
QUALITY = "best"
CANCELLED, FILTERED, UNKNOWN = "cancelled", "filter", "unknown"  # kinds of reasons
# After which nobody goes on with a file that was begun.
HOPELESS = frozenset({FailureKind.GONE, FailureKind.GEO, FailureKind.FORMAT, FailureKind.TOO_LARGE})
NAMED = "named.json"  # in the directory of an item that is being worked on


class Got(NamedTuple):
    """A video that is in the library."""

    published: Published
    info: dict[str, Any]
    resumed_bytes: int = 0


class Downloader:
    def __init__(
        self, store: Store, register: Register, visitor: Visitor, library: Library,
        settings: MediaSettings, in_thread: InThread, has_ffmpeg: bool,
    ) -> None:  # fmt: skip
        self._store = store
        self._register = register
        self._visitor = visitor
        self._library = library
        self._settings = settings
        self._has_ffmpeg = has_ffmpeg
        self._usual = Template.parse(settings.template or DEFAULT)
        self.in_thread = in_thread
        self.brain: Brain  # from the moment that an engine is about to start
        self._of_job: dict[int, int] = {}  # items of jobs that do not say so themselves
        self._blamed: dict[int, Failure] = {}  # what went wrong in jobs that end in this turn
        self.apart: Callable[[Callable[[], None]], object] = _in_a_thread
        self._busy: set[int] = set()  # items that a program works on
        self._tidied_for: Brain | None = None

    async def download(
        self, url: str | None = None, subscription_id: int | None = None, item: int | None = None,
        requires_cookie: bool = True, ua_profile: str | None = None, anyhow: bool = False,
    ) -> dict[str, Any] | Answered:  # fmt: skip
        """The job. `anyhow`: whatever the filters say."""
        row = None
        if subscription_id is not None:
            row = self._register.get(subscription_id, job.tenant)
            if row is None:
                raise Cancel(f"there is no subscription {subscription_id} any more")
            check_key(row.id)
        self._blamed.pop(job.id, None)  # what went wrong earlier is not why it ends now
        wanted = await self._wanted(row, url, item)
        site = site_of(wanted.url) if row is None else row.site
        check_site(site)
        try:
            there = await self.in_thread(self._look, wanted)
        except LibraryError as error:
            return self._no_room(error)
        if there is not None:
            return self._here(wanted, there, is_old=True)
        if wanted.id in self._busy:
            return Answered(Outcome.returned(after_s=BUSY_S))  # somebody has put a second job
        filters = Filters() if row is None or anyhow else filters_of(row)
        self._busy.add(wanted.id)
        try:
            return await self._get(row, wanted, site, filters)
        except LibraryError as error:
            return self._no_room(error)
        finally:
            self._busy.discard(wanted.id)

    # ------------------------------------------------------------------ what is wanted

    async def _wanted(self, row: Subscription | None, url: str | None, id: int | None) -> Item:
        """The item, which is made if nobody has listed it."""
        number = 0 if row is None else row.id
        found = await self.in_thread(self._find, number, url, id)
        if found is None:
            if not url:
                raise Cancel("there is no such item any more")
            found = await in_turn(self.brain, partial(self._new, job.tenant, number, url))
        self._of_job[job.id] = found.id
        return found

    def _find(self, subscription: int, url: str | None, id: int | None) -> Item | None:
        found = None if id is None else items.item(self._store, id)
        if found is not None and (found.tenant, found.subscription) == (job.tenant, subscription):
            return found
        if url is None:
            return None
        return items.item_of_url(self._store, job.tenant, subscription, url)

    def _new(self, tenant: str, subscription: int, url: str, now: float) -> Item:
        if subscription and subscription not in self._register.subscriptions:
            raise Cancel(f"there is no subscription {subscription} any more")
        entry = {"key": f"url:{hashlib.sha256(url.encode()).hexdigest()[:32]}", "url": url}
        found = items.new_item(self._register.item_numbers(1)[0], tenant, subscription, entry, now)
        found = found._replace(state=State.QUEUED.value)
        self.brain.write(ADD_ITEM, found)
        return found

    def _look(self, wanted: Item) -> Got | None:
        """Whether it is here already. LibraryError: nobody can say."""
        self._library.check()
        self._tidy_up()
        there = self._recorded(wanted)
        if there is not None:
            return there
        kept = self._named(wanted.id)
        if kept is None:
            return None
        stem, info = kept
        found = find_published(self._library.root, stem, wanted.key)
        return None if found is None else Got(found, info)

    def _recorded(self, wanted: Item) -> Got | None:
        """Where the store says that it is, or was: what had gone missing may be back."""
        if wanted.files is None:
            return None
        files = msgspec.json.decode(wanted.files)
        place = PurePosixPath(files["video"])
        if wanted.state != State.DONE:
            found = find_published(self._library.root, place.with_suffix(""), wanted.key)
            return None if found is None else Got(found, {})
        video = self._library.root / place
        if not video.is_file():
            return None
        return Got(Published(str(place.with_suffix("")), files, video.stat().st_size), {})

    def _tidy_up(self) -> None:
        """After a start: remove what was worked with, and is not needed any more."""
        if self._tidied_for is not self.brain:
            self._tidied_for = self.brain
            self._busy.clear()
            left = [int(name) for name in self._library.leftovers() if name.isdecimal()]
            for id in set(left) - set(items.unfinished(self._store, left)):
                self._library.drop_work(id)

    # ------------------------------------------------------------------ getting it

    async def _get(
        self, row: Subscription | None, wanted: Item, site: str, filters: Filters
    ) -> dict[str, Any] | Answered:
        work = await self.in_thread(self._library.work, wanted.id)
        begun = _bytes_in(work)
        rate = self._settings.rate_kb * 1_000
        try:
            answer = await self._visitor.visit(
                Task.DOWNLOAD, wanted.url, site=site, cookie=True,
                timeout_s=self._settings.download_timeout_s, on_progress=job.progress,
                directory=str(work), known=_known(wanted),
                formats=formats_for(QUALITY if row is None else row.quality, self._has_ffmpeg),
                limit_bytes_per_s=rate or None,
                min_free_bytes=self._settings.min_free_mb * MB,
                filters=filters,
            )  # fmt: skip
        except ProgramTimeout:
            if _bytes_in(work) >= begun + GREW_BYTES:
                return Answered(Outcome.returned(after_s=AGAIN_S))  # it only takes long
            raise
        if answer.failure is not None:
            return self._failed(wanted, answer.failure, site)
        got = await self.in_thread(self._publish, row, wanted, work, answer)
        return self._here(wanted, got)

    def _publish(self, row: Subscription | None, wanted: Item, work: Path, answer: Answer) -> Got:
        result = answer.result or {}
        info = dict(result.get("info") or {})
        stem = self._stem(row, wanted, result, info)
        self._keep_name(work, stem, info)
        thumbnail = result.get("thumbnail")
        published = publish(
            self._library.root, stem, work=work, media=work / result["file"],
            thumbnail=work / thumbnail if thumbnail else None, info=info, identity=wanted.key,
            nfo_kind="movie" if row is None or row.nfo != "episode" else "episode",
            show=None if row is None else row.name,
        )  # fmt: skip
        return Got(published, info, int(result.get("resumed_from_bytes") or 0))

    def _stem(
        self, row: Subscription | None, wanted: Item, result: dict[str, Any], info: dict[str, Any]
    ) -> PurePosixPath:
        template = self._usual if row is None or not row.template else Template.parse(row.template)
        facts = items.facts_of(info)
        stem = template.render(
            Facts(
                title=facts["title"] or wanted.title or "", id=str(info.get("id") or wanted.key),
                extractor=str(info.get("extractor") or ""),
                uploader=facts["uploader"] or wanted.uploader or "",
                subscription=SINGLES if row is None else row.name,
                site=site_of(wanted.url),
                published_at=wanted.published_at or facts["published_at"],
                index=None if wanted.place is None else wanted.place + 1,
                height=result.get("height"),
            )
        )  # fmt: skip
        return self._library.of(wanted.tenant) / stem

    def _keep_name(self, work: Path, stem: PurePosixPath, info: dict[str, Any]) -> None:
        """Beside what was got, so that whoever comes after a crash knows where it went."""
        kept = {"stem": str(stem), "info": items.facts_of(info)}
        (work / NAMED).write_bytes(msgspec.json.encode(kept))

    def _named(self, item: int) -> tuple[PurePosixPath, dict[str, Any]] | None:
        try:
            work = self._library.root / PRIVATE / "work" / str(item)
            kept = msgspec.json.decode((work / NAMED).read_bytes())
            return PurePosixPath(kept["stem"]), kept["info"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    # ------------------------------------------------------------------ how it ended

    def _here(self, wanted: Item, got: Got, *, is_old: bool = False) -> dict[str, Any]:
        job.with_end(partial(self._done, wanted, got))
        return {"item": wanted.id, "files": dict(got.published.files),
                "size_bytes": got.published.size_bytes, "resumed_bytes": got.resumed_bytes,
                "was_there": is_old}  # fmt: skip

    def _failed(self, wanted: Item, failure: Failure, site: str) -> dict[str, Any] | Answered:
        if failure.kind is FailureKind.FILTERED:
            job.with_end(partial(self._skip, wanted, failure.message))
            return {"item": wanted.id, "skipped": failure.message}
        if failure.kind is FailureKind.DISK:
            return self._no_room(LibraryError(failure.message))
        if failure.kind is not FailureKind.PUSHBACK:
            job.with_end(partial(self._blame, job.id, wanted, failure))
        return Answered(self._visitor.outcome(failure, site))

    def _no_room(self, error: LibraryError) -> Answered:
        """No fault of the video, nor of the site: all downloads wait."""
        job.with_end(partial(self._close_library, str(error)))
        return Answered(Outcome.returned(after_s=AGAIN_S))

    # ------------------------------------------------------------------ in the brain's turn

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """`JobType.ended`."""
        number: Any = change.ticket.id
        tenant = change.ticket.tenant
        ran_for = self._of_job.pop(number, 0)
        id = self._item_of(change, ran_for)
        if not id:
            return
        blamed = self._blamed.pop(number, None)
        self.brain.write(FREE_TWINS, (id, tenant, now))
        if change.after is JobState.FAILED:
            kind = UNKNOWN if blamed is None else blamed.kind.value
            reason = change.detail if blamed is None else in_words(blamed)
            self._end(id, tenant, State.FAILED, reason or "it failed", kind, now)
            if blamed is not None and blamed.kind in HOPELESS:
                self._leave_work(ran_for)
        elif change.after is JobState.CANCELLED:
            if ran_for:
                self._leave_work(ran_for)
            self._end(id, tenant, State.SKIPPED, change.detail or "cancelled", CANCELLED, now)

    def _item_of(self, change: Change, ran_for: int) -> int:
        """0: of none. What a label says may be anybody's words."""
        said = dict(change.ticket.labels).get(ITEM, "")
        if said.isdecimal() and said.isascii() and len(said) <= 15:
            return int(said)
        number: Any = change.ticket.id
        return ran_for or self._asked_for(number)

    def _asked_for(self, number: int) -> int:
        """The item of a request that names only an address, and has never run."""
        job = self._store.job(number)
        if job is None or job.spec is None:
            return 0
        url = spec_of(job.spec).about.get("url")
        row = self._register.subscriptions.get(subscription_of(job.key))
        if url is None or row is None:
            return 0
        found = items.item_of_url(self._store, job.tenant, row.id, url)
        return 0 if found is None else found.id

    def _end(self, id: int, tenant: str, state: State, reason: str, kind: str, now: float) -> None:
        """If it has not come to another end."""
        self.brain.write(END_ITEM, (id, tenant, state.value, error_text(reason), kind, now))

    def _leave_work(self, id: int) -> None:
        """As soon as it is written down that it is here, the note of where it went can go."""
        drop = partial(self._library.drop_work, id)
        self.brain.once_committed(lambda: self.apart(drop))

    def _close_library(self, why: str, now: float) -> None:
        self.brain.core.gates.close(TOOL, LIBRARY, now, until=now + CLOSED_S, why=why)
        self.brain.record(now, "library_closed", subject=f"tool:{LIBRARY}", detail=why)

    def _skip(self, wanted: Item, reason: str, now: float) -> None:
        self._leave_work(wanted.id)
        self._end(wanted.id, wanted.tenant, State.SKIPPED, reason, FILTERED, now)

    def _blame(self, number: int, wanted: Item, failure: Failure, now: float) -> None:
        self._blamed[number] = failure
        row = (wanted.id, failure.kind.value, error_text(in_words(failure)), wanted.failures + 1,
               now)  # fmt: skip
        self.brain.write(BLAME_ITEM, row)

    def _done(self, wanted: Item, got: Got, now: float) -> None:
        self._leave_work(wanted.id)
        facts = items.facts_of(got.info)
        told = {name: getattr(wanted, name) if value is None else value
                for name, value in facts.items()}  # fmt: skip
        files = msgspec.json.encode(dict(got.published.files)).decode()
        self.brain.write(
            KEEP_ITEM,
            (wanted.id, State.DONE.value, None, None, 0, told["title"], told["uploader"],
             told["published_at"], told["duration_s"], told["views"], files,
             got.published.size_bytes, now, now),
        )  # fmt: skip


def _in_a_thread(call: Callable[[], None]) -> None:
    """A library may be on a disk that takes its time, and nobody waits for this."""
    Thread(target=call, daemon=True).start()


def _known(wanted: Item) -> Known:
    """What the list has said."""
    return Known(
        title=wanted.title, published_at=wanted.published_at, duration_s=wanted.duration_s,
        views=wanted.views,
    )  # fmt: skip


def _bytes_in(work: Path) -> int:
    return sum(each.stat().st_size for each in work.iterdir() if each.is_file())
