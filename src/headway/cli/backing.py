"""`headway backup` and `headway restore`: the whole store in one file, and back."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headway import __version__
from headway.cli.asking import Call, asks
from headway.cli.client import CommandFailed
from headway.cli.printing import count, facts, new_console
from headway.cli.times import at_and_ago, span, stamp
from headway.cli.where import Where
from headway.net import sealing
from headway.store.backup import file as backups
from headway.store.backup import noted, sqlite
from headway.store.backup.file import Manifest, Reader, Tell

ENDING = ".headway"
NAMED = "headway-%Y%m%d-%H%M%S" + ENDING  # in UTC, whose clock is never put back
OF_OURS = re.compile(r"headway-\d{8}-\d{6}" + re.escape(ENDING))  # whoever names one keeps it

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file; a directory to name it by "
                                      "the time.")]  # fmt: skip


@asks
def backup(
    call: Call,
    file: File,
    with_keys: Annotated[
        bool, typer.Option("--with-keys", help="Also the keys that open stored secrets: whoever "
                           "has the file can then read them.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only check a backup that is there.")
    ] = False,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="In a directory: remove all but the "
                                 "newest so many.")
    ] = None,
) -> None:  # fmt: skip
    """Copy the whole store into one file, while a server works on it, and verify the file."""
    if verify:
        _verify(call, file)
        return
    where = _beside_the_store(call.where, "a backup is made")
    if where.dsn is None and not where.file.is_file():
        raise CommandFailed(f"there is no store in {where.data}; name its directory with --data, "
                            "or a database with --dsn")  # fmt: skip
    if keep is not None and not file.exists():
        file.mkdir(mode=0o700, parents=True)
    directory = file if file.is_dir() else None
    if keep is not None and directory is None:
        raise typer.BadParameter("--keep is for a directory of backups")
    path = file / datetime.now(UTC).strftime(NAMED) if directory else file
    keys_for = partial(_keys_here, where) if with_keys else _no_keys
    began = perf_counter()
    with _interruptible(), _bar("copying") as tell:
        manifest = backups.write(path, partial(_fill, where, path, tell), keys_for,
                                 made_by=__version__)  # fmt: skip
    took_s = perf_counter() - began
    noted.note(where.store_url, path, manifest.made_at)
    removed = _remove_old(path, keep) if keep is not None else []
    data = {"file": str(path), "bytes": path.stat().st_size, "took_s": round(took_s, 3),
            "removed": removed, **_view(manifest)}  # fmt: skip
    call.out.show(data, lambda said: _told(manifest, [
        ("file", said["file"]),
        ("size", f"{said['bytes'] / (1 << 20):.1f} MiB, made and verified in {span(took_s)}"),
    ]))  # fmt: skip
    _say_keys(call, manifest)


def _fill(where: Where, path: Path, tell: Tell, writer: backups.Writer) -> Any:
    from headway.apps.stored import sealed  # noqa: PLC0415

    if where.dsn is not None:
        return _postgres().copy_out(where.dsn, writer, sealed(), tell)
    return sqlite.copy_out(where.file, path, writer, sealed(), tell)


def _verify(call: Call, file: Path) -> None:
    with backups.reading(file) as reader, _bar("reading") as tell:
        manifest = reader.manifest
        if manifest.store == "sqlite":
            with tempfile.TemporaryDirectory(prefix="headway-verify-") as directory:
                sqlite.check_whole(reader, Path(directory), tell)
            reader.keys()
        else:
            reader.check(tell)
    call.out.show({"file": str(file), "whole": True, **_view(manifest)},
                  lambda said: _told(manifest, [("file", f"{said['file']} is whole")]))  # fmt: skip
    _say_keys(call, manifest)


@asks
def restore(
    call: Call, file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")]
) -> None:
    """Bring a backup back, into an empty directory (--data) or database (--dsn)."""
    where = _beside_the_store(call.where, "a backup is restored")
    began = perf_counter()
    with backups.reading(file) as reader, _interruptible():
        manifest = reader.manifest
        _check_store(manifest, where)
        with _bar("restoring") as tell:
            keys_file = _bring_back(reader, where, tell)
    took_s = perf_counter() - began
    missing = missing_keys(manifest, where)
    data = {"restored": str(file), "into": where.name, "took_s": round(took_s, 3),
            "keys_written": keys_file, "missing_keys": missing, **_view(manifest)}  # fmt: skip
    call.out.show(data, lambda _: _told(manifest, [
        ("restored", f"{file} into {where.name}, in {span(took_s)}"),
        ("keys", f"written to {keys_file}" if keys_file else None),
    ]))  # fmt: skip
    if missing:
        call.out.aside(
            f"missing: {count(sum(missing.values()), 'stored secret')} cannot be opened without "
            f"key {', '.join(missing)}; put it into {where.data / sealing.FILE} or "
            f"{sealing.VARIABLE}, or enter these secrets again"
        )
    for line in _next_steps(where):
        call.out.aside(line)


def _check_store(manifest: Manifest, where: Where) -> None:
    wanted = "sqlite" if where.dsn is None else "postgres"
    if manifest.store != wanted:
        option = "--data DIR" if manifest.store == "sqlite" else "--dsn URL"
        raise CommandFailed(f"this is a backup of a {manifest.store} store; restore it with "
                            f"{option}. (`headway export` and `headway import` lead from one "
                            "kind to the other)")  # fmt: skip


def _bring_back(reader: Reader, where: Where, tell: Tell) -> str | None:
    """The name of the file with keys, if the backup brought any."""
    from headway.apps.stored import migrations  # noqa: PLC0415

    keys = reader.keys()
    known, manifest = migrations(), reader.manifest
    _check_apps(manifest, {name: len(texts) for name, texts in known.items()})
    there = {name: known[name] for name in manifest.apps if name in known}
    if where.dsn is None or keys is not None:
        where.make_directory()
    with _keys_put_back(where, keys) as key_file:
        if where.dsn is not None:
            _postgres().copy_in(reader, where.dsn, there, tell)
        else:
            sqlite.copy_in(reader, where.file, there, tell)
    return key_file


@contextmanager
def _keys_put_back(where: Where, keys: str | None) -> Iterator[str | None]:
    """Before the store, and gone again if that fails: a store without them would be half of what
    was restored, and could not be restored again.
    """
    if keys is None:
        yield None
        return
    key_file = where.data / sealing.FILE
    if os.path.lexists(key_file):
        raise CommandFailed(f"there are keys in {key_file} already, and the backup brings others; "
                            "move that file away")  # fmt: skip
    sealing.write_key_file(str(where.data), keys.split())
    try:
        yield str(key_file)
    except BaseException:
        key_file.unlink(missing_ok=True)
        raise


def _check_apps(manifest: Manifest, known: dict[str, int]) -> None:
    newer = [name for name, version in manifest.apps.items() if version > known.get(name, version)]
    if newer:
        raise CommandFailed(f"the backup was made by Headway {manifest.headway}, whose tables of "
                            f"{', '.join(newer)} are newer than this one knows; upgrade "
                            "Headway")  # fmt: skip


# ---------------------------------------------------------------------- keys


def _no_keys(_needed: Mapping[str, int]) -> None:
    """They are kept elsewhere."""


def _keys_here(where: Where, needed: Mapping[str, int]) -> str | None:
    """As they stand in their file. None: there are none yet, and no secret needs one."""
    directory = str(where.data)
    here = sealing.ids_at(directory)
    missing = {key: many for key, many in needed.items() if key not in here}
    if missing:
        raise CommandFailed(
            f"{count(sum(missing.values()), 'stored secret')} cannot be opened without key "
            f"{', '.join(missing)}, which is not in {where.data / sealing.FILE} or "
            f"{sealing.VARIABLE}; put it there, or enter these secrets again, or make the backup "
            "without --with-keys"
        )
    return "\n".join(sealing.keys_at(directory)[1]) + "\n" if here else None


def missing_keys(manifest: Manifest, where: Where) -> dict[str, int]:
    here = sealing.ids_at(str(where.data))
    return {key: many for key, many in manifest.keys.items() if key not in here}


def _say_keys(call: Call, manifest: Manifest) -> None:
    if manifest.with_keys:
        call.out.aside("The keys of stored secrets are IN this file: whoever can read it can read "
                       "the secrets. Keep it as safe as the keys.")  # fmt: skip
    elif manifest.keys:
        sealed = count(sum(manifest.keys.values()), "secret")
        call.out.aside(
            f"The keys of stored secrets are not in it. Keep {sealing.FILE} (or "
            f"{sealing.VARIABLE}) elsewhere: {sealed} sealed with key {', '.join(manifest.keys)}."
        )


# ---------------------------------------------------------------------- telling


def _view(manifest: Manifest) -> dict[str, Any]:
    return {
        "store": manifest.store, "headway": manifest.headway, "made_at": stamp(manifest.made_at),
        "schema": manifest.schema, "applications": manifest.apps, "rows": manifest.rows,
        "keys": manifest.keys, "with_keys": manifest.with_keys,
    }  # fmt: skip


def _told(manifest: Manifest, first: list[tuple[str, Any]]) -> RenderableType:
    apps = ", ".join(f"{name} {version}" for name, version in manifest.apps.items())
    rows = manifest.rows
    return facts([
        *first,
        ("made", f"{at_and_ago(stamp(manifest.made_at), time())} by Headway {manifest.headway}"),
        ("store", f"{manifest.store}, schema version {manifest.schema}"
         + (f"; applications: {apps}" if apps else "")),
        ("rows", f"{manifest.total:,} in {count(len(rows), 'table')}, of which jobs "
         f"{rows.get('jobs', 0):,}, events {rows.get('events', 0):,}, schedules "
         f"{rows.get('schedules', 0):,}"),
    ])  # fmt: skip


def _next_steps(where: Where) -> Iterator[str]:
    at = f"--data {where.data}" if where.dsn is None else "--dsn …"
    yield ("next: make sure that no server and no worker of the old store runs any more, then "
           f"start `headway serve {at}`, and look at `headway doctor {at}`")  # fmt: skip
    yield ("Jobs that ran when the backup was made are given again when their leases are over; "
           "schedules make up for what they missed by their rules. What happened after the backup "
           "is not in it. Files of the archive are not in backups either.")  # fmt: skip


# ---------------------------------------------------------------------- how


def _beside_the_store(where: Where, what: str) -> Where:
    if where.server is not None:
        raise CommandFailed(f"{what} where the store is: name it with --data or --dsn, without "
                            "--server (a server may run meanwhile)")  # fmt: skip
    return where


def _postgres() -> Any:
    try:
        from headway.store.backup import postgres  # noqa: PLC0415 - it is an extra
    except ImportError:
        raise CommandFailed("PostgreSQL needs psycopg; pip install 'headway[postgres]'") from None
    return postgres


def _remove_old(new: Path, keep: int) -> list[str]:
    """Beside the new one, and never itself, whatever the clock says: by when they were written."""
    others = [each for each in new.parent.iterdir()
              if OF_OURS.fullmatch(each.name) and each.name != new.name]  # fmt: skip
    others.sort(key=lambda each: (each.stat().st_mtime, each.name), reverse=True)
    old = others[keep - 1 :]
    for each in reversed(old):
        each.unlink()
    return [str(each) for each in reversed(old)]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Whoever ends the command by a signal, or the terminal it runs in, finds nothing half done
    either. What is ignored stays so: `nohup` means it.
    """

    def leave(number: int, _frame: Any) -> None:
        sys.exit(128 + number)

    before: dict[int, Any] = {}
    try:
        for each in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) is not signal.SIG_IGN:
                with suppress(ValueError):  # not in the main thread
                    before[each] = signal.signal(each, leave)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """On stderr for whoever watches; nothing otherwise."""
    console = new_console(stderr=True)
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
