"""One call of a site, for a job that has had its turn: with an account or as a stranger, by one
program that is gone when this returns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from headway.api.turns import in_turn
from headway.apps.media.accounts.cookie_file import CookieFile
from headway.apps.media.accounts.pool import Account, Heard, Word, usable_at
from headway.apps.media.accounts.register import Accounts
from headway.apps.media.fetcher.protocol import FailureKind, Order, Task
from headway.apps.media.jobs import key_of
from headway.apps.media.judging import heard_of, outcome_of
from headway.apps.media.ordering import UserAgents, parse_extractor_args
from headway.apps.media.presets import account_site, preset_of_site
from headway.apps.media.running import Answer, Failure
from headway.apps.media.settings import MediaSettings
from headway.core import Outcome
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.errors import SealedElsewhere
from headway.outcomes import Answered, Fail

T = TypeVar("T")
AGAIN_S = 1.0  # a job that found no account waits at the gate of accounts

OnEntry = Callable[[dict[str, Any]], None]
OnProgress = Callable[[float, float | None, str], None]


class AllRefused(Exception):
    """The site has sent this very job away with each account that can be used."""


class Fetch(Protocol):
    async def __call__(
        self, order: Order, *, timeout_s: float, on_entry: OnEntry | None,
        on_progress: OnProgress | None,
    ) -> Answer: ...  # fmt: skip


class Visitor:
    def __init__(
        self, settings: MediaSettings, accounts: Accounts, allowed: tuple[str, ...],
        cookies: Path, fetch: Fetch,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._accounts = accounts
        self._allowed = allowed
        self._cookies = cookies  # the directory of files that programs read
        self._agents = UserAgents(tuple(settings.ua_profiles.split(",")))
        self._extractor_args = parse_extractor_args(settings.extractor_args)
        self.fetch = fetch
        self.brain: Brain  # from the moment that an engine is about to start

    async def visit(
        self, task: Task, url: str, *, site: str, cookie: bool, timeout_s: float,
        ua_profile: str | None = None, on_entry: OnEntry | None = None,
        on_progress: OnProgress | None = None, **more: Any,
    ) -> Answer:  # fmt: skip
        """`more` are further fields of the order. Raises `Answered` if it cannot be made now."""
        check_site(site)
        preset = preset_of_site(site)
        try:
            account = await self._account(site) if cookie else None
        except AllRefused as error:
            return Answer(failure=Failure(kind=FailureKind.CREDENTIAL, message=str(error)))
        failure: Failure | None = None
        heard = Heard(Word.UNKNOWN)
        try:
            with ExitStack() as stack:
                file = None
                if account is not None:
                    file = stack.enter_context(self._cookie_file(account))
                order = Order(
                    task=task, url=url, referer=preset.referer, sleep_s=preset.sleep_s,
                    user_agent=self._agents.choose(
                        with_cookie=cookie, profile=ua_profile, number=job.id
                    ),
                    cookie_file=None if file is None else str(file),
                    extractor_args=self._extractor_args, allowed=self._allowed, **more,
                )  # fmt: skip
                answer = await self.fetch(
                    order, timeout_s=timeout_s, on_entry=on_entry, on_progress=on_progress
                )
            failure = answer.failure
            heard = heard_of(failure)
        finally:
            if account is not None:
                give_back = partial(self._accounts.given_back, job.fence, heard)
                self.brain.ask(give_back)
        if account is not None and failure is not None:
            self._remember(account, failure)
        return answer

    def outcome(self, failure: Failure, site: str) -> Outcome:
        """What a failed visit means for its job."""
        another = failure.kind is FailureKind.CREDENTIAL and self._has_another(site)
        return outcome_of(failure, another_account=another)

    def has_account(self, site: str) -> bool:
        return bool(self._accounts.list(account_site(site)))

    # ------------------------------------------------------------------ accounts

    async def _account(self, site: str) -> Account | None:
        """None: this site needs none, and has none. AllRefused: no other is left for this job."""
        name, tried, fence = account_site(site), self._tried(), job.fence

        def pick(now: float) -> Account | None:
            found = self._accounts.pick(name, now, tried, holder=fence)
            if found is None and (preset_of_site(site).needs_account or self.has_account(site)):
                self._accounts.gates.sync_gate(name, now, needed=True)
                raise Answered(Outcome.returned(after_s=self._wait_s(name, tried, now)))
            return found

        return await in_turn(self.brain, pick)

    def _wait_s(self, name: str, tried: list[int], now: float) -> float:
        """The gate is open if there is an account that others can use; for who was refused with
        that one it is the others that count.
        """
        if not tried:
            return AGAIN_S
        others = [each for each in self._accounts.list(name) if each.id not in tried]
        at = usable_at(others, name, now)
        if at is None:
            raise AllRefused(f"{name} has refused this with every account that can be used")
        return max(AGAIN_S, at - now)

    def _cookie_file(self, account: Account) -> CookieFile:
        try:
            return CookieFile(self._cookies, self._accounts.cookies_of(account.id))
        except (SealedElsewhere, KeyError) as error:
            reason = f"the cookies of {account.label} cannot be read: {error}"
            raise Answered(Outcome.failed(reason, fatal=True)) from error

    def _tried(self) -> list[int]:
        """Accounts that the site has refused for this very job."""
        kept = job.saved
        return list(kept.get("refused", ())) if isinstance(kept, dict) else []

    def _remember(self, account: Account, failure: Failure) -> None:
        if failure.kind is FailureKind.CREDENTIAL:
            job.checkpoint({"refused": [*self._tried(), account.id]})

    def _has_another(self, site: str) -> bool:
        tried = set(self._tried())
        return any(
            each.id not in tried and each.enabled and each.status not in ("disabled", "expired")
            for each in self._accounts.list(account_site(site))
        )


def check_site(site: str) -> None:
    """A job must have waited at the gate of the site that it calls."""
    if job.upstream != site:
        raise Fail(
            f"this request did not wait its turn at {site}; enqueue it with "
            "POST /api/requests/enqueue, which knows where its address leads"
        )


def check_key(subscription: int) -> None:
    """A job must have waited in the line of the subscription that it is about: no two programs
    work for one.
    """
    if job.key != key_of(subscription):
        raise Fail(
            f"this request did not wait in the line of subscription {subscription}; enqueue it "
            "with POST /api/requests/enqueue, which knows its key"
        )
