"""The rules of all tenants. Read from any thread; changed in the brain's turn, and written with it.

What refreshing and filling look at is `active`: a tenant's rules in their order, replaced as a
whole, so that nobody sees half of a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headway.apps.feeds.folders import is_below
from headway.apps.feeds.rules import MAX_RULES, Rule
from headway.apps.feeds.tables import DROP_RULE, PUT_RULE, RULES
from headway.engine.brain import Brain
from headway.store import Store

_rule = msgspec.json.Decoder(Rule)


class KeptRule(NamedTuple):
    """A rule of somebody, and where it stands among the others: 1 is the first."""

    tenant: str
    id: str
    place: int
    rule: Rule
    created_at: float

    def row(self) -> tuple[str, str, int, str, float]:
        settings = msgspec.json.encode(self.rule).decode()
        return self.tenant, self.id, self.place, settings, self.created_at


class TooManyRules(Exception):
    """The tenant has as many rules as it may have; nothing was changed."""


class Ruling:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.active: dict[str, tuple[Rule, ...]] = {}  # of tenants that have any
        self.brain: Brain  # from the moment that an engine is about to start
        self._kept: dict[str, tuple[KeptRule, ...]] = {}

    def meet(self, brain: Brain) -> None:
        """An engine is about to start."""
        self.brain = brain
        brain.entered.append(self._load)

    def _load(self, now: float) -> None:
        """Nobody else changes the store any more."""
        columns = ", ".join(RULES.columns)
        found: dict[str, list[KeptRule]] = {}
        query = f"select {columns} from feed_rules order by tenant, place, created_at, id"
        for tenant, id, place, settings, created_at in self._store.rows(query):
            kept = KeptRule(tenant, id, place, _rule.decode(settings), created_at)
            found.setdefault(tenant, []).append(kept)
        self._kept.clear()
        self.active.clear()
        for tenant, rules in found.items():
            self._set(tenant, rules)

    def of_tenant(self, tenant: str) -> tuple[KeptRule, ...]:
        """In their order."""
        return self._kept.get(tenant, ())

    def get(self, tenant: str, id: str) -> KeptRule:
        """KeyError: this tenant has no such rule."""
        for each in self.of_tenant(tenant):
            if each.id == id:
                return each
        raise KeyError(id)

    # ------------------------------------------------------------------ in the brain's turn

    def add(self, tenant: str, id: str, rule: Rule, place: int | None, now: float) -> KeptRule:
        """At its place, so that others stand behind it; None: as the last one."""
        before = self.of_tenant(tenant)
        if len(before) >= MAX_RULES:
            raise TooManyRules
        self._line_up(tenant, list(before), KeptRule(tenant, id, 0, rule, now), place)
        self._record(now, "rule_made", id, rule)
        return self.get(tenant, id)

    def change(self, tenant: str, id: str, rule: Rule, place: int | None, now: float) -> KeptRule:
        """KeyError: there is no such rule. `place` None: where it was."""
        before = self.get(tenant, id)
        others = [each for each in self.of_tenant(tenant) if each.id != id]
        self._line_up(tenant, others, before._replace(rule=rule), place or before.place)
        self._record(now, "rule_changed", id, rule)
        return self.get(tenant, id)

    def remove(self, tenant: str, id: str, now: float) -> None:
        """KeyError: there is no such rule."""
        gone = self.get(tenant, id)
        self.brain.write(DROP_RULE, (tenant, id))
        self._write(tenant, [each for each in self.of_tenant(tenant) if each.id != id])
        self._record(now, "rule_removed", id, gone.rule)

    def rename_folder(self, tenant: str, before: str, after: str) -> None:
        """Rules that are for a folder, or for one below it, follow it when it gets another name."""
        rules = [
            each._replace(rule=_renamed(each.rule, before, after))
            for each in self.of_tenant(tenant)
        ]
        self._write(tenant, rules)

    # ------------------------------------------------------------------ how

    def _line_up(
        self, tenant: str, others: list[KeptRule], rule: KeptRule, place: int | None
    ) -> None:
        others.insert(len(others) if place is None else max(place, 1) - 1, rule)
        self._write(tenant, others)

    def _write(self, tenant: str, rules: Sequence[KeptRule]) -> None:
        """In this order, with places from 1 on. Only what has changed is written."""
        known = {each.id: each for each in self.of_tenant(tenant)}
        placed = [each._replace(place=place) for place, each in enumerate(rules, 1)]
        changed = [each.row() for each in placed if known.get(each.id) != each]
        if changed:
            self.brain.write(PUT_RULE, *changed)
        self._set(tenant, placed)

    def _set(self, tenant: str, rules: Sequence[KeptRule]) -> None:
        if rules:
            self._kept[tenant] = tuple(rules)
            self.active[tenant] = tuple(each.rule for each in rules)
        else:
            self._kept.pop(tenant, None)
            self.active.pop(tenant, None)

    def _record(self, now: float, event: str, id: str, rule: Rule) -> None:
        self.brain.record(now, event, subject=f"rule:{id}", detail=rule.name)


def _renamed(rule: Rule, before: str, after: str) -> Rule:
    folders = dict.fromkeys(
        after + each.removeprefix(before) if is_below(each, before) else each
        for each in rule.folders
    )
    return msgspec.structs.replace(rule, folders=tuple(folders))
