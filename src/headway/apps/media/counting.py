"""How many there should be: `expected_total`, by the quick ways that sites have, and never by
reading a whole list. And what an address is: `parse`.

A stranger asks first. Where strangers are sent away, the same question is put in the lane with a
cookie, if there is an account for the site.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from headway.apps.media.fetcher.protocol import FailureKind, Task
from headway.apps.media.jobs import BY_HAND, COUNT, new_request
from headway.apps.media.judging import in_words
from headway.apps.media.listing import InThread
from headway.apps.media.model import MAX_TITLE, Subscription, error_text
from headway.apps.media.presets import preset_for, site_of
from headway.apps.media.register import Register
from headway.apps.media.running import Failure
from headway.apps.media.settings import MediaSettings
from headway.apps.media.visiting import Visitor, check_key, check_site
from headway.engine.hands.context import job
from headway.engine.ledger import clean
from headway.outcomes import Answered, Cancel, Fail
from headway.store import Store

KNOWN = "known"  # as many as the list had when it was last read to its end


class Counter:
    def __init__(
        self, store: Store, register: Register, visitor: Visitor, settings: MediaSettings,
        in_thread: InThread,
    ) -> None:  # fmt: skip
        self._store = store
        self._register = register
        self._visitor = visitor
        self._settings = settings
        self.in_thread = in_thread

    async def expected_total(
        self, subscription_id: int, url: str | None = None, requires_cookie: bool = False,
        ua_profile: str | None = None,
    ) -> dict[str, Any] | Answered:  # fmt: skip
        """The job."""
        row = self._register.get(subscription_id, job.tenant)
        if row is None:
            raise Cancel(f"there is no subscription {subscription_id} any more")
        check_key(row.id)
        answer = await self._visitor.visit(
            Task.COUNT, row.url, site=row.site, cookie=requires_cookie, ua_profile=ua_profile,
            timeout_s=self._settings.count_timeout_s,
        )  # fmt: skip
        if answer.failure is not None:
            return self._failed(row, answer.failure, requires_cookie)
        result = answer.result or {}
        total, how = result.get("total"), str(result.get("how") or "")
        known = await self.in_thread(self._known, row)
        if total is None and row.is_complete:
            total, how = known, KNOWN
        if total is None:
            raise Fail("the site does not say how many there are; read its list to know it")
        title = result.get("title")
        job.with_end(partial(self._end, row.id, int(total), how, title, int(total) > known))
        return {"subscription_id": row.id, "expected_total": int(total), "how": how}

    def _known(self, row: Subscription) -> int:
        return int(
            self._store.rows(
                "select count(*) from media_items where subscription = ? and gone_at is null",
                (row.id,),
            )[0][0]
        )

    def _failed(
        self, row: Subscription, failure: Failure, cookie: bool
    ) -> dict[str, Any] | Answered:
        refused = failure.kind is FailureKind.CREDENTIAL
        if refused and not cookie and self._visitor.has_account(row.site):
            job.with_end(partial(self._with_cookie, row.id))
            return {"subscription_id": row.id, "expected_total": None, "stage": "cookie"}
        return Answered(self._visitor.outcome(failure, row.site))

    # ------------------------------------------------------------------ in the brain's turn

    def _with_cookie(self, id: int, now: float) -> None:
        row = self._register.subscriptions.get(id)
        if row is not None:
            again = new_request(
                COUNT, row.url, now, subscription=row, cookie=True, priority=BY_HAND
            )
            self._register.enqueue([again])

    def _end(
        self, id: int, total: int, how: str, title: str | None, has_more: bool, now: float
    ) -> None:
        """`has_more`: the list has more than we know, and not at its head, perhaps."""
        row = self._register.subscriptions.get(id)
        if row is not None:
            row = row._replace(total=total, total_how=how, total_at=now)
            if has_more and not row.depth:
                row = row._replace(full_at=None)  # the next look goes to its end
            if title and not row.found_title:
                row = row._replace(found_title=clean(str(title))[:MAX_TITLE])
            self._register.put(row)


class Looker:
    """What is behind an address, for somebody who thinks of subscribing to it."""

    def __init__(self, register: Register, visitor: Visitor, settings: MediaSettings) -> None:
        self._register = register
        self._visitor = visitor
        self._settings = settings

    async def parse(
        self, url: str | None = None, subscription_id: int | None = None,
        requires_cookie: bool = False, ua_profile: str | None = None,
    ) -> dict[str, Any] | Answered:  # fmt: skip
        """The job."""
        if subscription_id is not None:
            row = self._register.get(subscription_id, job.tenant)
            if row is not None:
                check_key(row.id)
                url = row.url
        if not url:
            raise Fail("there is nothing to look at; name a url")
        site = site_of(url)
        check_site(site)
        answer = await self._visitor.visit(
            Task.LOOK, url, site=site, cookie=requires_cookie, ua_profile=ua_profile,
            timeout_s=self._settings.meta_timeout_s,
        )  # fmt: skip
        if answer.failure is not None:
            outcome = self._visitor.outcome(answer.failure, site)
            job.log(error_text(in_words(answer.failure)), "warning")
            return Answered(outcome)
        return {"url": url, "site": site, "preset": preset_for(url).name, **(answer.result or {})}
