"""What a server keeps for itself, the same for every store: tokens, secrets, and batches."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from headway.errors import StoreError
from headway.store.filtering import is_text
from headway.store.looking import Looker
from headway.store.records import Token

TOKEN = (
    "select id, name, hash, scopes, tenant, created_at, expires_at, revoked_at, last_used_at "
    "from tokens"
)


class Keeper(Looker):
    @abstractmethod
    def _write(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own, and the rows that it returns."""

    def open_batch(self, label: str, now: float, tenant: str = "") -> int:
        rows = self._write(
            "insert into batches (created_at, label, tenant) values (?, ?, ?) returning id",
            (now, label, tenant),
        )
        return int(rows[0][0])

    # ------------------------------------------------------------------ tokens

    def add_token(self, token: Token) -> None:
        self._write("insert into tokens values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id", token)

    def token(self, id: str) -> Token | None:
        row = self._one(f"{TOKEN} where id = ?", (id,)) if is_text(id) else None
        return None if row is None else Token._make(row)

    def tokens(self) -> list[Token]:
        """All of them, in the order in which they were made."""
        made = [Token._make(row) for row in self.rows(TOKEN)]
        return sorted(made, key=lambda token: (token.created_at, token.id))

    def revoke_token(self, id: str, at: float) -> bool:
        """False: there is no such token, or it was revoked before."""
        return is_text(id) and bool(
            self._write(
                "update tokens set revoked_at = ? where id = ? and revoked_at is null returning id",
                (at, id),
            )
        )

    def used_token(self, id: str, at: float) -> None:
        """Nobody should be kept from his work because this cannot be noted down."""
        if is_text(id):
            with contextlib.suppress(StoreError):
                self._write(
                    "update tokens set last_used_at = ? where id = ? "
                    "and (last_used_at is null or last_used_at < ?) returning id",
                    (at, id, at),
                )

    # ------------------------------------------------------------------ secrets

    def secret(self, name: str, value: str) -> str:
        """The value that is stored under this name: this one, if the name is new."""
        row = self._one("select value from secrets where name = ?", (name,))
        if row is None:
            # Whoever comes second changes nothing, and is told what the first one has stored.
            [row] = self._write(
                "insert into secrets (name, value) values (?, ?) "
                "on conflict (name) do update set name = excluded.name returning value",
                (name, value),
            )
        return str(row[0])
