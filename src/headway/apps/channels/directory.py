"""All channels, and which serve which model. Read from any thread; changed in the brain's turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from headway.apps.channels.calling import KEY_REFUSED
from headway.apps.channels.channel import Channel, about_key, route_of
from headway.apps.channels.tables import DROP_CHANNEL, PUT_CHANNEL
from headway.engine.brain import Brain
from headway.errors import HeadwayError
from headway.net.redaction import SECRETS
from headway.net.sealing import Vault
from headway.store import Store

UPSTREAM = "upstream"
API, FILE = "api", "file"
KEY_REFUSALS = tuple(f"{status} ban" for status in sorted(KEY_REFUSED))  # so gates say it
SELECT = (
    "select code, sealed_key, settings, source, created_at, updated_at from llm_channels "
    "order by code"
)

_decode = msgspec.json.Decoder(Channel)


@dataclass(frozen=True, slots=True)
class Entry:
    """A channel as it is stored. `key` None: it has none, or it cannot be read here."""

    channel: Channel
    key: str | None
    sealed_key: str | None
    source: str
    created_at: float
    updated_at: float
    trouble: str = ""

    def __repr__(self) -> str:  # never with its key
        return f"Entry({self.channel.code!r}, {self.source})"


class Directory:
    def __init__(self, store: Store, vault: Callable[[], Vault]) -> None:
        self._store = store
        self._vault = vault
        self.entries: dict[str, Entry] = {}  # replaced as a whole, never changed
        self.models: dict[str, tuple[Channel, ...]] = {}  # the cheapest first
        self.brain: Brain  # from the moment that an engine is about to start
        self._changed_at = 0.0
        self.settled: list[Callable[[float], None]] = []  # who hears, in the turn, of changes

    # ------------------------------------------------------------------ looking

    def get(self, code: str) -> Entry | None:
        return self.entries.get(code)

    def serving(self, model: str) -> tuple[Channel, ...]:
        """Channels for an online call, the cheapest first."""
        return tuple(each for each in self.models.get(model, ()) if each.enabled)

    def knows(self, model: str) -> bool:
        return model in self.models

    def leads(self) -> dict[str, tuple[str, ...]]:
        """Where the jobs of each model stand."""
        return {
            route_of(model): tuple(each.code for each in channels if each.pulls)
            for model, channels in self.models.items()
        }

    # ------------------------------------------------------------------ loading

    def load(self) -> None:
        """As they are stored. Before the engine starts, and when others may have changed them."""
        self._take(self._entry(row) for row in self._store.rows(SELECT))

    def _take(self, entries: Iterable[Entry]) -> None:
        found = {each.channel.code: each for each in entries}
        models: dict[str, list[Channel]] = {}
        for entry in found.values():
            models.setdefault(entry.channel.model, []).append(entry.channel)
        for channels in models.values():
            channels.sort(key=lambda each: (_price(each), each.code))
        self.entries = found
        self.models = {model: tuple(channels) for model, channels in models.items()}

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        code, sealed_key, settings, source, created_at, updated_at = row
        key, trouble = None, ""
        if sealed_key is not None:
            try:
                key = self._vault().unseal(sealed_key, about_key(code))
                SECRETS.add(key)
            except HeadwayError as error:
                trouble = str(error)
        return Entry(
            _decode.decode(settings), key, sealed_key, source, created_at, updated_at, trouble
        )

    # ------------------------------------------------------------------ changing, in a turn

    def meet(self, brain: Brain) -> None:
        """An engine is about to start: declare what it must know before it takes jobs in."""
        self.brain = brain
        for entry in self.entries.values():
            channel = entry.channel
            brain.settings.declare("code", UPSTREAM, channel.code, channel.upstream_settings())
        brain.routes.begin(self.leads(), model="no channel serves ")

    def settle(self, now: float) -> None:
        """Let all names lead where they should; those of models that nobody serves, nowhere."""
        brain = self.brain
        leads = self.leads()
        for name, upstreams in leads.items():
            model = name.partition(":")[2]
            brain.routes.lead(name, upstreams, now, why=f"no channel takes queued work for {model}")
        for hear in self.settled:
            hear(now)

    def put(self, channel: Channel, key: str | None, source: str, now: float) -> Entry:
        """A new channel, or other settings for one. A key of None keeps the one it has."""
        brain = self.brain
        before = self.entries.get(channel.code)
        if key is not None:
            SECRETS.add(key)
            sealed: str | None = self._vault().seal(key, about_key(channel.code))
        else:
            key, sealed = (None, None) if before is None else (before.key, before.sealed_key)
        if before is not None and (before.channel, before.key, before.source) == (
            channel, key, source
        ):  # fmt: skip
            return before
        created_at = now if before is None else before.created_at
        trouble = before.trouble if before is not None and sealed == before.sealed_key else ""
        entry = Entry(channel, key, sealed, source, created_at, now, trouble)
        self._changed_at = now
        brain.controls.declare(UPSTREAM, channel.code, channel.upstream_settings(), now)
        settings = msgspec.json.encode(channel).decode()
        row = (channel.code, channel.model, sealed, settings, source, created_at, now)
        brain.write(PUT_CHANNEL, row)
        models_before = set(self.models)
        self._take((*(e for e in self.entries.values() if e.channel.code != channel.code), entry))
        if before is None or before.key != key:
            self._welcome(channel.code, now)
        self._lead_nowhere(models_before, now)
        self.settle(now)
        what = "channel_add" if before is None else "channel_change"
        brain.record(now, what, subject=f"channel:{channel.code}", detail=settings)
        return entry

    def _welcome(self, code: str, now: float) -> None:
        """There is another key. What the provider has closed for the one before is open again; what
        an operator has closed is not.
        """
        gates = self.brain.core.gates
        if gates.get(UPSTREAM, code).door.closed_why.startswith(KEY_REFUSALS):
            gates.open(UPSTREAM, code, now)

    def remove(self, code: str, now: float) -> bool:
        """False: there is no such channel. What runs there may end."""
        brain = self.brain
        if code not in self.entries:
            return False
        brain.write(DROP_CHANNEL, (code,))
        self._changed_at = now
        models_before = set(self.models)
        self._take(each for each in self.entries.values() if each.channel.code != code)
        self._lead_nowhere(models_before, now)
        self.settle(now)
        self._withdraw(code, now)
        brain.record(now, "channel_remove", subject=f"channel:{code}")
        return True

    def rescan(self, now: float) -> None:
        """Look at the store again, for another server may have changed something."""
        brain = self.brain
        if now == self._changed_at:
            return  # in this very turn, so the store does not know of it yet; look next time
        before, models_before = self.entries, set(self.models)
        self.load()
        for code, entry in self.entries.items():
            if code not in before or before[code].channel != entry.channel:
                settings = entry.channel.upstream_settings()
                brain.controls.declare(UPSTREAM, code, settings, now)
        for code in before:
            if code not in self.entries:
                self._withdraw(code, now)
        self._lead_nowhere(models_before, now)
        self.settle(now)

    def resealed(self, renewed: Mapping[str, str]) -> None:
        """In the turn that puts these into the store, in the place of those: the same keys."""
        self.entries = {
            code: replace(each, sealed_key=renewed.get(each.sealed_key or "", each.sealed_key))
            for code, each in self.entries.items()
        }

    def _withdraw(self, code: str, now: float) -> None:
        """A channel is gone. Its limits hold until all jobs that stood there have moved elsewhere:
        without them, all would go at once.
        """
        brain = self.brain

        def undeclare(now: float) -> None:
            if code not in self.entries:  # nobody has added it again
                brain.controls.undeclare(UPSTREAM, code, now)

        brain.routes.afterwards(undeclare, now)

    def _lead_nowhere(self, models_before: set[str], now: float) -> None:
        """Jobs of a model that has lost its last channel wait for another one."""
        for model in models_before - set(self.models):
            why = f"no channel serves {model}"
            self.brain.routes.lead(route_of(model), (), now, why=why)


def _price(channel: Channel) -> float:
    return channel.price.input_per_1k + channel.price.output_per_1k
