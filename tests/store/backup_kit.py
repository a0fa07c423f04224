"""Backups of either store, as the command makes and restores them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.apps.stored import migrations, sealed
from headway.store.backup import file as backups
from headway.store.backup import postgres, sqlite
from headway.store.backup.file import Manifest, Writer


def nobody(_done: int, _total: int) -> None:
    """Is told how far it has come."""


def is_file(url: str) -> bool:
    return url.startswith("sqlite:///")


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def back_up(url: str, path: Path, keys: str | None = None) -> Manifest:
    def fill(writer: Writer) -> Any:
        if is_file(url):
            return sqlite.copy_out(file_of(url), path, writer, sealed(), nobody)
        return postgres.copy_out(url, writer, sealed(), nobody)

    return backups.write(path, fill, lambda _: keys, made_by="tests")


def bring_back(path: Path, url: str) -> None:
    known = migrations()
    with backups.reading(path) as reader:
        apps = {name: known[name] for name in reader.manifest.apps if name in known}
        if is_file(url):
            sqlite.copy_in(reader, file_of(url), apps, nobody)
        else:
            postgres.copy_in(reader, url, apps, nobody)


def verify(path: Path, directory: Path) -> None:
    with backups.reading(path) as reader:
        if reader.manifest.store == "sqlite":
            sqlite.check_whole(reader, directory, nobody)
        else:
            reader.check()
