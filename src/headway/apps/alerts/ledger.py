"""What has begun, what goes on and what has ended, of all that needs attention. No clock and no
network: it is given what is seen, and says what is to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from headway.api.attention import ORDER, Level

View = dict[str, Any]  # as `/api/attention` shows it
# Whether somebody is to be told: of this kind and level, and what it is of, if it is of many.
Wants = Callable[[str, str, Sequence[str]], bool]


class What(StrEnum):
    BEGINS = "alert.begins"
    WORSENS = "alert.worsens"
    REPEATS = "alert.repeats"
    ENDS = "alert.ends"
    EVENT = "alert.event"  # it happened, and is over
    TEST = "alert.test"


class Message(NamedTuple):
    """`key` is the same whenever the same is told, also after a restart: receivers know it."""

    what: What
    key: str
    at: float
    alert: View

    @property
    def of(self) -> str:
        """The id of the alert."""
        return self.key.rpartition("@")[0]

    def view(self) -> dict[str, Any]:
        return {"type": self.what.value, "at": self.at, "id": self.key, "alert": self.alert}


class Open(msgspec.Struct):
    """An alert that has begun."""

    alert: View
    began_at: float
    told_at: float | None  # None: nobody has heard of it for certain
    seen_at: float
    ending: bool = False  # its end is on the way


def id_of(alert: View) -> str:
    subject = alert["subject"]
    return f"{alert['kind']}:{subject['kind']}:{subject['name']}"[:500]


class Ledger:
    def __init__(
        self, wants: Wants, *, repeat_s: float, calm_s: float, looks: int = 1
    ) -> None:  # fmt: skip
        """`looks`: in how many in a row something must be seen before it is told."""
        self._wants = wants
        self._repeat_s = repeat_s
        self._calm_s = calm_s
        self._looks = looks
        self._fresh: dict[str, int] = {}  # in how many looks in a row it was seen
        self.open: dict[str, Open] = {}

    def load(self, rows: Iterable[tuple[str, str, float, float | None]], now: float) -> None:
        """What was known before a restart. It is looked for as long as anything else, before it has
        ended: a server that has just started does not see everything at once.
        """
        for id, alert, began_at, told_at in rows:
            try:
                view = msgspec.json.decode(alert, type=dict)
                ORDER.index(Level(view["level"]))
            except (msgspec.MsgspecError, ValueError, KeyError):
                continue
            self.open[id] = Open(view, began_at, told_at, now)

    def hear(
        self, alerts: Iterable[View], now: float, *, blind: bool = False
    ) -> list[Message]:  # fmt: skip
        """What is seen now, all of it. `blind`: nobody can be asked, so nothing has ended."""
        fresh, self._fresh = self._fresh, {}
        alerts = list(alerts)
        self._still_among_many(alerts, now)
        told = [message for alert in alerts for message in self._seen(alert, now, fresh)]
        if blind:
            for each in self.open.values():
                each.seen_at = now
        for id, each in self.open.items():
            if not each.ending and now - each.seen_at >= self._calm_s:
                each.ending = True
                told.append(_message(What.ENDS, id, each, now))
        return told

    def _still_among_many(self, alerts: list[View], now: float) -> None:
        """Those that have begun alone go on while one sentence stands for all of their kind: it
        does not name them all.
        """
        kinds = {kind for alert in alerts for kind in alert.get("of", ())}
        for each in self.open.values():
            if each.alert.get("kind") in kinds and not each.ending:
                each.seen_at = now

    def _seen(self, alert: View, now: float, fresh: dict[str, int]) -> Iterable[Message]:
        id = id_of(alert)
        known = self.open.get(id)
        if known is None or known.ending:  # its end is being told, and another one begins
            looks = self._fresh[id] = fresh.get(id, 0) + 1
            if looks >= self._looks and self._wanted(alert):
                self.open[id] = begun = Open(alert, now, None, now)
                yield _message(What.BEGINS, id, begun, now)
            return
        worse = ORDER.index(Level(alert["level"])) < ORDER.index(Level(known.alert["level"]))
        known.alert, known.seen_at = alert, now
        if worse:
            if known.told_at is not None:  # somebody still has to hear that it began
                known.told_at = now
            yield _message(What.WORSENS, id, known, now)
        elif known.told_at is not None and now - known.told_at >= self._repeat_s:
            known.told_at = now
            yield _message(What.REPEATS, id, known, now)

    def _wanted(self, alert: View) -> bool:
        return self._wants(alert["kind"], alert["level"], alert.get("of", ()))

    def untold(self, now: float) -> list[Message]:
        """After a restart: what has begun, and perhaps nobody has heard of."""
        return [_message(What.BEGINS, id, each, now) for id, each in self.open.items()
                if each.told_at is None]  # fmt: skip

    def heard_of(self, message: Message, now: float) -> str | None:
        """Everybody was told. The id of an alert that is over, or None."""
        id = message.of
        known = self.open.get(id)
        if known is None or message.alert.get("began_at") != known.began_at:
            return None  # it has begun again since
        if message.what is What.ENDS:
            del self.open[id]
            return id
        known.told_at = known.told_at or now
        return None


def _message(what: What, id: str, each: Open, now: float) -> Message:
    began = f"{each.began_at:.3f}"
    alert = {**each.alert, "began_at": each.began_at}
    suffix = "" if what in (What.BEGINS, What.ENDS) else f".{now:.0f}"
    return Message(what, f"{id}@{began}.{what.name.lower()}{suffix}", now, alert)
