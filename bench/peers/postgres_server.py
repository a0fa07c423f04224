"""A PostgreSQL of our own, as the tests have it: on loopback, durable, gone when the run ends."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.postgres import Postgres

ON_THE_DISK = Path("/var/tmp")  # unlike /tmp never in memory, which syncs in no time


@dataclass(frozen=True, slots=True)
class PostgresServer:
    url: str
    pid: int
    version: str


@contextmanager
def postgres_server(directory: Path) -> Iterator[PostgresServer]:
    place = _place(directory)
    with tempfile.TemporaryDirectory(
        prefix="headway-bench-", dir=place, ignore_cleanup_errors=True
    ) as own:
        server = Postgres(Path(own), fsync="on", synchronous_commit="on", full_page_writes="on")
        try:
            server.start()
            [(version,)] = server.execute("show server_version")
            yield PostgresServer(server.url(), server.pid, str(version))
        finally:
            server.stop("immediate")  # nobody will read what is there


def _place(directory: Path) -> Path:
    """Beside everything else, if the server's user can go there: it does not run as root."""
    if os.geteuid() != 0:
        return directory
    directory.chmod(0o711)
    within = all(each.stat().st_mode & stat.S_IXOTH for each in directory.parents)
    return directory if within else ON_THE_DISK
