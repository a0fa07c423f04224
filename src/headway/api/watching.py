"""All that needs attention now, whoever has noticed it: the worst first, never more than people
read, and from memory for a moment, since every open page asks for it. Who has just changed
something sees what came of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from headway.api.attention import ORDER, Attention, Level
from headway.api.noticing import NOTED_S, SILENT, Kept, Noticer
from headway.api.views import moment
from headway.errors import EngineStopped
from headway.net.redaction import redact

if TYPE_CHECKING:
    from headway.api.site import Site

MOST = 100  # items in an answer
FRESH_S = 1.5
PATIENCE_S = 10.0  # for another one who looks
MANY = 1_000  # tenants whose answers are kept

logger = logging.getLogger("headway")


class Watch:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._noticer = Noticer(site)
        self._lock = threading.Lock()
        self._known: dict[str | None, Kept[dict[str, Any]]] = {}
        self._complained: set[str] = set()

    async def keep_noting(self) -> None:
        """In the server's loop, until it is cancelled."""
        while True:
            await asyncio.sleep(NOTED_S)
            self._noticer.note()

    def answer(self, tenant: str | None) -> dict[str, Any]:
        """For operators (None) all there is, for a tenant what concerns it. From any thread; one
        at a time looks.
        """
        known = self._fresh(tenant)
        if known is not None:
            return known
        if not self._lock.acquire(timeout=PATIENCE_S):
            raise EngineStopped("what needs attention is still being looked at; try again")
        try:
            known = self._fresh(tenant)
            if known is None:
                acts = self._noticer.acts
                known = self._look(tenant)
                if len(self._known) >= MANY:
                    self._known.clear()
                self._known[tenant] = Kept(known, monotonic() + FRESH_S, acts)
            return known
        finally:
            self._lock.release()

    def _fresh(self, tenant: str | None) -> dict[str, Any] | None:
        kept = self._known.get(tenant)
        return None if kept is None else kept.fresh(monotonic(), self._noticer.acts)

    def _look(self, tenant: str | None) -> dict[str, Any]:
        now = self._site.now()
        items = self._tried("server", partial(self._noticer.all, tenant, now))
        silent = bool(items) and items[0].kind in SILENT
        for each in () if silent else self._site.applications:
            # One that has nothing to say need not know of this.
            attention = getattr(each, "attention", None)
            if attention is not None:
                items += self._tried(each.name, partial(attention, tenant, now))
        items.sort(key=lambda item: ORDER.index(item.level))
        return {
            "items": [_view(item) for item in items[:MOST]],
            "more": max(0, len(items) - MOST),
            "at": moment(now),
        }

    def _tried(self, who: str, look: Callable[[], Iterable[Attention]]) -> list[Attention]:
        """One who cannot look hides nothing that others see."""
        try:
            return list(look())
        except Exception:
            if who not in self._complained:
                self._complained.add(who)
                logger.exception("what needs attention at %s cannot be told", who)
            return [Attention("unknown", Level.WARN, ("application", who), f"what needs attention "
                              f"at {who} cannot be told; the server's log says why",
                              {"who": who})]  # fmt: skip


def _view(item: Attention) -> dict[str, Any]:
    noun, name = item.subject
    return {
        "kind": item.kind,
        "level": item.level.value,
        "subject": {"kind": noun, "name": name},
        "since": moment(item.since),
        "until": moment(item.until),
        "values": {key: _redacted(value) for key, value in item.values.items()},
        "text": redact(item.text),
        "of": list(item.of),
    }


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    return [_redacted(each) for each in value] if isinstance(value, list) else value
