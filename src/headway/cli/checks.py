"""What `headway doctor` looks at. Each check says what it found and, if it is wrong, what to do."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time

from headway import __version__
from headway.cli.client import Client, Refused
from headway.cli.printing import count
from headway.cli.storage import commit_s, damage, found_version, newest_version
from headway.cli.times import ago, moment, span
from headway.cli.where import Where, left_by_server
from headway.errors import HeadwayError

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE, NO_SPACE = 1 << 30, 100 << 20  # bytes
SLOW_S = 0.1  # a commit; jobs are acknowledged after one
SKEW_S = 5.0
OLD_DAYS = 90
NOBODY = "no worker knows"
WAITING_TYPES = "work:"  # how the gates in front of workers elsewhere are named


@dataclass(frozen=True, slots=True)
class Finding:
    level: str  # ok, warn or fail
    about: str
    text: str


def ok(about: str, text: str) -> Finding:
    return Finding("ok", about, text)


def warn(about: str, text: str) -> Finding:
    return Finding("warn", about, text)


def fail(about: str, text: str) -> Finding:
    return Finding("fail", about, text)


# ---------------------------------------------------------------------- this machine


def python() -> Iterator[Finding]:
    said = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < OLDEST_PYTHON:
        yield fail("python", f"{said}; Headway needs 3.11 or newer")
    else:
        yield ok("python", said)


def directory(where: Where) -> Iterator[Finding]:
    """The data directory: there, ours, with room."""
    if where.dsn is not None:
        return
    data = where.data
    if not data.exists():
        yield fail("data", f"{data} is not there; `headway serve --data {data}` makes it, or name "
                   "another with --data")  # fmt: skip
        return
    if not data.is_dir():
        yield fail("data", f"{data} is no directory; name another with --data")
        return
    if not os.access(data, os.W_OK | os.X_OK):
        yield fail("data", f"{data} cannot be written; give {_user()} the right to")
    else:
        yield ok("data", f"{data} can be written")
    free = shutil.disk_usage(data).free
    said = f"{free / (1 << 30):.1f} GiB are free"
    if free < NO_SPACE:
        yield fail("disk", f"{said}; free some, or nothing can be stored")
    elif free < LITTLE_SPACE:
        yield warn("disk", f"{said}; free some soon")
    else:
        yield ok("disk", said)


def _user() -> str:
    return f"user {os.getuid()}" if hasattr(os, "getuid") else "this user"


def store(where: Where) -> Iterator[Finding]:
    """Its schema, whether it is whole, and how quick it is."""
    if where.dsn is None and not where.file.exists():
        if where.data.is_dir():
            yield warn("store", f"{where.file} is not there yet; `headway serve` makes it")
        return
    try:
        found, newest = found_version(where), newest_version(where)
        if found > newest:
            yield fail("store", f"schema version {found} is newer than this Headway, which knows "
                       f"{newest}; upgrade it")  # fmt: skip
            return
        if found < newest:
            yield fail("store", f"schema version {found} is older than {newest}; run `headway "
                       "migrate`, or start the server, which does the same")  # fmt: skip
            return
        yield ok("store", f"opens, with schema version {found}")
        if where.dsn is None:
            wrong = damage(where)
            if wrong:
                yield fail("integrity", f"{where.file} is damaged: {wrong}; restore it from a copy")
                return
            yield ok("integrity", f"{where.file.stat().st_size / (1 << 20):.1f} MiB, and whole")
        took_s = commit_s(where)
        said = f"a commit takes {took_s * 1000:.1f} ms"
        yield (
            warn("commit", f"{said}; a quicker disk would acknowledge jobs sooner")
            if (took_s > SLOW_S)
            else ok("commit", said)
        )
    except HeadwayError as error:
        yield fail("store", str(error))


def server(where: Where) -> Iterator[Finding]:
    if where.server is not None:
        return
    if where.dsn is not None:
        yield warn("server", "it is not known whether one runs on this database; name it with "
                   "--server to have it checked")  # fmt: skip
        return
    left = left_by_server(where.data)
    if where.running() is not None:
        assert left is not None
        yield ok("server", f"answers at {left.url} (process {left.pid})")
    elif left is not None:
        yield fail("server", f"does not answer at {left.url} (process {left.pid}); if it was "
                   "killed, start it again, else look at its log")  # fmt: skip
    elif where.data.is_dir():
        yield warn("server", "none runs here, so jobs wait; start one with `headway serve`")


# ---------------------------------------------------------------------- what the API says


def of_server(client: Client) -> Iterator[Finding]:
    """Only where one runs."""
    if client.direct:
        return
    info = client.get("/api/info")
    if info["version"] != __version__:
        yield warn("version", f"the server is {info['version']} and this command {__version__}; "
                   "use the same")  # fmt: skip
    else:
        yield ok("version", f"server and command are {__version__}")
    try:
        client.get("/readyz")
        yield ok("engine", "runs, and reaches its store")
    except Refused as error:
        yield fail("engine", str(error))
    skew_s = client.skew_s()
    if skew_s is not None and abs(skew_s) > SKEW_S:
        which = "ahead of" if skew_s > 0 else "behind"
        yield warn("clock", f"the server's is {span(abs(skew_s))} {which} the one here; set both")


def tokens(client: Client, host_is_public: bool) -> Iterator[Finding]:
    """Whoever is not on loopback needs one."""
    if not client.direct:
        host_is_public = not client.get("/api/info")["open"]
    try:
        rows = client.get("/api/tokens")["items"]
    except Refused:
        yield warn("tokens", "cannot be looked at without a token with the scope admin")
        return
    valid = [row for row in rows if row["revoked_at"] is None and not _over(row["expires_at"])]
    if valid:
        yield ok("tokens", f"{len(valid)} can be used")
    elif host_is_public:
        yield fail("tokens", "there are none, and the server is not for loopback alone; make one "
                   "with `headway tokens create NAME --scope admin`")  # fmt: skip
    else:
        yield ok("tokens", "there are none, and on loopback none are needed")


def _over(at: str | None) -> bool:
    ends = moment(at)
    return ends is not None and ends <= time()


def pauses(client: Client) -> Iterator[Finding]:
    if client.get("/api/queue/stats")["paused"]["all"]:
        yield warn("queue", "everything is paused; nothing starts until it is resumed")
    for noun in ("lanes", "upstreams"):
        paused = [each["name"] for each in client.get(f"/api/{noun}")["items"] if each["paused"]]
        if paused:
            yield warn(noun, f"paused: {', '.join(paused)}; `headway {noun} resume NAME`")


def unknown_types(client: Client) -> Iterator[Finding]:
    """Types whose jobs wait for ever. Without a server nobody can tell."""
    if client.direct:
        return
    found = 0
    for gate in client.get("/api/tools")["items"]:
        if not gate["name"].startswith(WAITING_TYPES) or NOBODY not in gate["detail"]:
            continue
        type = gate["name"].removeprefix(WAITING_TYPES)
        waiting = client.get("/api/jobs", type=type, status="queued", size=1)["total"]
        if waiting:
            found += 1
            yield fail("types", f"no worker knows {type}, and {count(waiting, 'job')} of it "
                       "waits; start the server with --app, or a `headway worker`, that "
                       "has it")  # fmt: skip
    if not found:
        yield ok("types", "all jobs that wait are known to a worker")


def closed(client: Client) -> Iterator[Finding]:
    found = [each for each in client.get("/api/upstreams")["items"] if each["closed_until"]]
    for gate in found:
        why = f" ({gate['closed_why']})" if gate["closed_why"] else ""
        yield warn("upstreams", f"{gate['name']} is closed, and opens {ago(gate['closed_until'])}"
                   f"{why}; `headway upstreams open {gate['name']}` opens it now")  # fmt: skip
    if not found:
        yield ok("upstreams", "none is closed")


def failures(client: Client) -> Iterator[Finding]:
    many = client.get("/api/jobs", q="status:failed finished:>1h", size=1)["total"]
    if many:
        yield warn("failures", f"{many} in the last hour; see `headway jobs ls status:failed "
                   "finished:\\>1h`")  # fmt: skip
    else:
        yield ok("failures", "none in the last hour")


def archive(client: Client) -> Iterator[Finding]:
    """If it is on, and anybody uses it."""
    try:
        seen = client.get("/api/archive")
    except Refused:
        return
    if not seen["subscriptions"] and not any(seen["items"].values()):
        return
    library, version = seen["library"], seen["yt_dlp"]["version"]
    if library["status"] != "ok":
        yield fail("archive", library["reason"])
    elif library["free_bytes"] is not None:
        yield ok("archive", f"{library['free_bytes'] / (1 << 30):.1f} GiB are free in its library")
    if version is None:
        yield fail("yt-dlp", "it cannot be started; run `pip install -U yt-dlp`")
    elif _days_old(version) > OLD_DAYS:
        yield warn("yt-dlp", f"{version} is {_days_old(version)} days old, and sites change; run "
                   "`pip install -U yt-dlp`")  # fmt: skip
    if not seen["ffmpeg"]:
        yield warn("ffmpeg", "it is not there, so only videos with sound in one file are got; "
                   "install it")  # fmt: skip
    for site, by_status in (seen["accounts"] or {}).items():
        for status in ("expired", "disabled"):
            if by_status.get(status):
                yield warn("accounts", f"{count(by_status[status], 'account')} of {site} "
                           f"{status}; see `headway archive accounts`")  # fmt: skip


def _days_old(version: str) -> int:
    """The versions of yt-dlp are dates; 0: this one is none."""
    try:
        year, month, day = (int(part) for part in version.split(".")[:3])
        return (datetime.now(UTC) - datetime(year, month, day, tzinfo=UTC)).days
    except ValueError:
        return 0


def clock(client: Client) -> Iterator[Finding]:
    """What happened cannot lie ahead, unless the clock was set back."""
    newest = client.get("/api/trail", limit=1)["newest"]
    last = client.get("/api/trail", after=max(0, newest - 1), limit=1)["items"]
    ahead_s = (moment(last[0]["at"]) or 0.0) - time() if last else 0.0
    if ahead_s > SKEW_S:
        yield fail("clock", f"the last event lies {span(ahead_s)} ahead; this clock is behind, or "
                   "was set back: set it right")  # fmt: skip
    else:
        yield ok("clock", "agrees with what happened")
