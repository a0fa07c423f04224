"""The keys of one data directory, and what is done with them while a server runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headway.api.problems import Problem
from headway.api.site import Site
from headway.apps.keys.resealing import Portion, Resealing
from headway.apps.stored import sealed
from headway.engine.brain import Brain
from headway.errors import ENGINE_ELSEWHERE, BadSettings
from headway.net import sealing
from headway.net.sealing import VARIABLE, Vault


class Ring:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._directory = site.config.data

    # ------------------------------------------------------------------ looking

    def view(self) -> dict[str, Any]:
        here, counts = self._ids(), self._counts()
        source = VARIABLE if self._in_environment else os.path.join(self._directory, sealing.FILE)
        items = [
            {"id": id, "role": "seals" if place == 0 else "opens", "secrets": counts.get(id, 0)}
            for place, id in enumerate(here)
        ]
        items += [
            {"id": id, "role": "missing", "secrets": many}
            for id, many in counts.items() if id not in here
        ]  # fmt: skip
        return {
            "source": "environment" if self._in_environment else "file", "place": source,
            "items": items,
        }  # fmt: skip

    def left(self) -> int:
        """Secrets that a key here could open, and another than the first has sealed."""
        here, counts = self._ids(), self._counts()
        return sum(counts.get(id, 0) for id in here[1:])

    def _counts(self) -> dict[str, int]:
        return Resealing(self._site.store, sealed()).counts()

    def _ids(self) -> list[str]:
        try:
            return sealing.ids_at(self._directory)
        except BadSettings as error:
            raise Problem(503, str(error), kind="no-secret-key") from error

    @property
    def _in_environment(self) -> bool:
        return VARIABLE in os.environ

    # ------------------------------------------------------------------ changing

    def rotate(self) -> str:
        self._check_leads()
        if self._in_environment:
            raise Problem(
                409,
                f"the keys are in {VARIABLE}, which only whoever starts the server can change: put "
                f"a new key and a comma before what is there, on every server of this store, "
                f"restart them, and run `headway keys reseal`. {sealing.HOW_TO_MAKE_ONE}",
                kind="keys-in-environment",
            )
        with self._changing():
            if not self._ids():
                return Vault.made_at(self._directory).ids[0]
            _, keys = sealing.keys_at(self._directory)
            new = sealing.new_key()
            sealing.write_key_file(self._directory, [new, *keys])
            return sealing.id_of(new)

    def reseal(self, most: int) -> Portion:
        self._check_leads()
        if not self._ids():
            return Portion(0, 0)
        hears = [hear for each in self._site.applications
                 if (hear := getattr(each, "resealed", None)) is not None]  # fmt: skip
        resealing = Resealing(self._site.store, sealed())
        return resealing.portion(Vault.made_at(self._directory), most, self._turn, hears)

    def prune(self) -> list[str]:
        self._check_leads()
        if not self._ids():
            return []
        if self._in_environment:
            removed = self._unneeded(sealing.keys_at(self._directory)[1])
            if removed:
                raise Problem(409, f"nothing needs {', '.join(removed)}; take it out of {VARIABLE} "
                              "on every server of this store, and restart them",
                              kind="keys-in-environment")  # fmt: skip
            return []
        with self._changing():
            keys = sealing.keys_at(self._directory)[1]
            removed = self._unneeded(keys)
            if removed:
                kept = [key for key in keys if sealing.id_of(key) not in removed]
                sealing.write_key_file(self._directory, kept)
            return removed

    def _unneeded(self, keys: list[str]) -> list[str]:
        """The ids of those that have sealed nothing that is stored; never of the first."""
        needed = self._counts()
        ids = [sealing.id_of(key) for key in keys]
        return [id for id in ids[1:] if id != ids[0] and id not in needed]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with sealing.changing(self._directory):
                yield
        except BadSettings as error:
            raise Problem(503, str(error), kind="no-secret-key") from error

    def _turn(self, do: Callable[[Brain], None]) -> None:
        brain = self._site.engine.brain
        self._site.wait(self._site.engine.ask(lambda _: do(brain)))

    def _check_leads(self) -> None:
        if self._site.app.engine is None:
            raise Problem(409, ENGINE_ELSEWHERE, kind="not-leading")
