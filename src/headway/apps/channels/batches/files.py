"""Files in OpenAI's shape: what batches read, and what they leave.

A file is UTF-8 text in parts of about 256 KiB, so that none is ever in memory as a whole. Its row
says how long it is; while it is being written that is unknown, and nobody sees it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from secrets import token_hex
from typing import Any, NamedTuple

from headway.apps.channels.tables import DROP_FILE, FILES, PUT_FILE, PUT_PART
from headway.store import Store
from headway.store.tables import Write

BATCH, USER_DATA, BATCH_OUTPUT = "batch", "user_data", "batch_output"
UPLOADED = (BATCH, USER_DATA)  # what may be uploaded for
PART = 262_144  # bytes, or a little more
KEPT_S = 30 * 86_400.0  # inputs and outputs of batches
BEING_WRITTEN = -1  # in the place of a length
ABANDONED_S = 86_400.0  # nobody writes on a file for so long
AT_ONCE = 100

COLUMNS = ", ".join(FILES.columns)
DROP_PARTS = Write(
    sqlite="delete from llm_file_parts where file in (select value ->> 0 from jsonb_each(?1))",
    postgres="delete from llm_file_parts where file in "
    "(select cells ->> 0 from jsonb_array_elements($1) as given (cells))",
    types=("text",),
    key=(0,),
    name="drop parts of files",
)


class StoredFile(NamedTuple):
    """The columns of `llm_files`."""

    id: str
    tenant: str
    filename: str
    purpose: str
    bytes: int
    created_at: float
    expires_at: float | None

    def view(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.bytes,
            "created_at": int(self.created_at),
            "expires_at": None if self.expires_at is None else int(self.expires_at),
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


class NotText(ValueError):
    """The file is no text in UTF-8. A batch is JSON, one object in each line, in UTF-8."""


def new_file_id() -> str:
    return f"file-{token_hex(16)}"


class Files:
    """Everything blocks; it may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # ------------------------------------------------------------------ looking

    def get(self, id: str, tenant: str | None) -> StoredFile | None:
        """One that this tenant may see; None stands for all of them."""
        rows = self._store.rows(
            f"select {COLUMNS} from llm_files where id = ? and bytes >= 0 "
            "and tenant = coalesce(?, tenant)",
            (id, tenant),
        )
        return StoredFile._make(rows[0]) if rows else None

    def page(
        self, tenant: str | None, purpose: str | None, limit: int, after: StoredFile | None,
        *, newest_first: bool,
    ) -> list[StoredFile]:  # fmt: skip
        """Those behind this one, in order."""
        way, order = ("<", "desc") if newest_first else (">", "asc")
        where = ""
        values: tuple[Any, ...] = ()
        if after is not None:
            where = f"and (created_at, id) {way} (?, ?) "
            values = (after.created_at, after.id)
        rows = self._store.rows(
            f"select {COLUMNS} from llm_files where bytes >= 0 and tenant = coalesce(?, tenant) "
            f"and purpose = coalesce(?, purpose) {where}"
            f"order by created_at {order}, id {order} limit ?",
            (tenant, purpose, *values, limit),
        )
        return [StoredFile._make(row) for row in rows]

    def content(self, id: str) -> Iterator[str]:
        """Part after part."""
        part = 0
        while True:
            rows = self._store.rows(
                "select data from llm_file_parts where file = ? and part = ?", (id, part)
            )
            if not rows:
                return
            yield rows[0][0]
            part += 1

    def lines(self, id: str, longest: int) -> Iterator[tuple[int, str | None]]:
        """Each line that is not empty, with its number from 1. None: it is too long."""
        number, pieces, size = 1, [""], 0
        for text in self.content(id):
            first, *others = text.split("\n")
            pieces.append(first)
            size += len(first)
            for following in others:
                line = _line(number, pieces, size, longest)
                if line != "":
                    yield number, line
                number, pieces, size = number + 1, [following], len(following)
            if size > longest:
                pieces.clear()  # it is too long already, so what it says does not matter
        line = _line(number, pieces, size, longest)
        if line != "":
            yield number, line

    # ------------------------------------------------------------------ changing

    def writer(self, id: str, tenant: str, filename: str, purpose: str, now: float) -> Writer:
        return Writer(self._store, StoredFile(id, tenant, filename, purpose, 0, now, None))

    def add(self, file: StoredFile) -> None:
        """It is whole, and may be seen."""
        self._store.write([(PUT_FILE, [tuple(file)])])

    def drop(self, *ids: str) -> None:
        some = [(id,) for id in ids]
        self._store.write([(DROP_FILE, some), (DROP_PARTS, some)])

    def drop_old(self, now: float, used: set[str]) -> int:
        """Delete files whose time is over, and what was never written to its end. Those that are
        in use stay.
        """
        rows = self._store.rows(
            "select id from llm_files where expires_at < ? or (bytes < 0 and created_at < ?)",
            (now, now - ABANDONED_S),
        )
        rows += self._store.rows(
            "select distinct file from llm_file_parts as part "
            "where not exists (select 1 from llm_files where id = part.file)"
        )
        old = [id for (id,) in rows if id not in used]
        for start in range(0, len(old), AT_ONCE):
            self.drop(*old[start : start + AT_ONCE])
        return len(old)


def _line(number: int, pieces: list[str], size: int, longest: int) -> str | None:
    if size > longest:
        return None
    text = "".join(pieces).strip()
    return text.removeprefix("\ufeff") if number == 1 else text


class Writer:
    """A file on its way into the store. Nobody sees it before its row is put there."""

    def __init__(self, store: Store, file: StoredFile) -> None:
        self._store = store
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pieces: list[str] = []
        self._size = 0  # bytes that are not stored yet
        self._parts = 0
        self._begun = False
        self.file = file

    def begin(self) -> None:
        """Take the place. What an attempt before has left there goes."""
        self._begun = True
        place = tuple(self.file._replace(bytes=BEING_WRITTEN))
        self._store.write([(PUT_FILE, [place]), (DROP_PARTS, [(self.file.id,)])])

    def add(self, data: bytes) -> bool:
        """True: it is time to `flush`."""
        try:
            text = self._decoder.decode(data)
        except UnicodeDecodeError as error:
            raise NotText(NotText.__doc__) from error
        if "\x00" in text:
            raise NotText(f"The file has a NUL character. {NotText.__doc__}")
        self._pieces.append(text)
        self._size += len(data)
        self.file = self.file._replace(bytes=self.file.bytes + len(data))
        return self._size >= PART

    def flush(self) -> None:
        """Store what came. Blocks."""
        if not self._begun:
            self.begin()
        text = "".join(self._pieces)
        self._pieces, self._size = [], 0
        if text:
            self._store.write([(PUT_PART, [(self.file.id, self._parts, text)])])
            self._parts += 1

    def finish(self) -> StoredFile:
        """Store the rest. The row that lets others see it is for the caller to put."""
        try:
            self._decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise NotText(NotText.__doc__) from error
        self.flush()
        return self.file

    def give_up(self) -> None:
        """Leave nothing behind."""
        if self._begun:
            self._store.write([(DROP_FILE, [(self.file.id,)]), (DROP_PARTS, [(self.file.id,)])])
