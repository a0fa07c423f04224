"""What `headway doctor` looks at that somebody has to keep: backups, keys, alerts, and the servers
that share a store.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from time import time

from headway.cli.checks import SKEW_S, Finding, fail, ok, warn
from headway.cli.client import Client, Refused
from headway.cli.printing import count
from headway.cli.storage import database_clock
from headway.cli.times import span
from headway.cli.where import Where
from headway.errors import HeadwayError
from headway.net import sealing
from headway.store.backup import noted

DAY_S = 86_400.0
OLD_DAYS = 7
HOW = "`headway backup DIRECTORY --keep 14`, best every day from cron or a timer"


def backups(where: Where) -> Iterator[Finding]:
    """When the last one was made, as far as the store knows."""
    if where.dsn is None and not where.file.exists():
        return
    last, now = noted.last(where.store_url), time()
    if last is None:
        since = noted.in_use_since(where.store_url)
        if since is not None and now - since > OLD_DAYS * DAY_S:
            yield warn("backup", f"none was ever made with `headway backup`; run {HOW} (unless you "
                       "make backups by other means)")  # fmt: skip
        else:
            yield ok("backup", f"none yet; run {HOW}")
        return
    age_s = max(0.0, now - last.at)
    said = f"the last one is {span(age_s)} old ({last.file}, {last.bytes / (1 << 20):.1f} MiB)"
    if age_s > OLD_DAYS * DAY_S:
        yield warn("backup", f"{said}; run {HOW}")
    elif os.path.isdir(Path(last.file).parent) and not os.path.exists(last.file):
        yield warn("backup", f"{said}, and is not there any more; look for it, or run {HOW}")
    else:
        yield ok("backup", said)


def key_file(where: Where) -> Iterator[Finding]:
    """Whether it is for its owner alone; the server refuses it otherwise."""
    path = where.data / sealing.FILE
    if os.environ.get(sealing.VARIABLE) is not None or not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield fail("keys", f"{path} can be read or changed by other users (mode {mode:o}); run "
                   f"`chmod 600 {path}`, and then `headway keys rotate`")  # fmt: skip


def clocks(where: Where) -> Iterator[Finding]:
    """Ours against that of the database, by which leases of servers end."""
    if where.dsn is None:
        return
    try:
        ahead_s = database_clock(where.dsn) - time()
    except HeadwayError:
        return  # it was said before
    if abs(ahead_s) > SKEW_S:
        which = "ahead of" if ahead_s > 0 else "behind"
        yield warn("clock", f"the database's is {span(abs(ahead_s))} {which} the one here; let "
                   "NTP set both")  # fmt: skip
    else:
        yield ok("clock", f"{span(abs(ahead_s))} from the database's")


def keys(client: Client) -> Iterator[Finding]:
    try:
        seen = client.get("/api/keys")
    except Refused as error:
        if error.status in (401, 403):
            yield warn("keys", "cannot be looked at without a token with the scope admin")
        else:
            yield fail("keys", str(error))
        return
    missing = [each for each in seen["items"] if each["role"] == "missing"]
    for each in missing:
        yield fail("keys", f"{count(each['secrets'], 'stored secret')} cannot be opened: key "
                   f"{each['id']} is not in {seen['place']}; put it back (a copy of the old "
                   f"{sealing.FILE}, or a backup made --with-keys), or enter the secrets "
                   "again")  # fmt: skip
    left = sum(each["secrets"] for each in seen["items"] if each["role"] == "opens")
    if left:
        yield warn("keys", f"{count(left, 'secret')} of older keys; run `headway keys reseal`")
    elif not missing:
        many = sum(each["secrets"] for each in seen["items"])
        yield ok("keys", f"open all {count(many, 'stored secret')}")


def alerts(client: Client) -> Iterator[Finding]:
    """Whether receivers are reached, as far as is known; nothing is sent."""
    if client.direct:
        return
    try:
        seen = client.get("/api/alerts")
    except Refused:
        return  # for whoever may see all
    if not seen["receivers"]:
        yield ok("alerts", "nobody is told; set url in [alerts] to have a webhook called")
    for each in seen["receivers"]:
        if each["error"]:
            yield fail("alerts", f"{each['host']} is not reached: {each['error']}; correct url in "
                       "[alerts] or the receiver, and try `headway alerts test`")  # fmt: skip
        elif each["last_told_at"] is None:
            yield ok("alerts", f"{each['host']} was not told anything yet; try `headway alerts "
                     "test`")  # fmt: skip
        else:
            yield ok("alerts", f"reach {each['host']}")


def servers(client: Client) -> Iterator[Finding]:
    """Those that share the store: of one version, and one of them leads."""
    try:
        found = client.get("/api/servers")
    except Refused:
        return
    items = found["items"]
    if client.direct and not any(each["url"] for each in items):
        return  # it is this command
    versions = sorted({each["version"] for each in items})
    if len(versions) > 1:
        yield warn("servers", f"they are of several versions: {', '.join(versions)}; finish the "
                   "upgrade, one after the other")  # fmt: skip
    if not any(each["role"] == "leads" for each in items):
        yield fail("servers", f"none of {count(len(items), 'server')} leads; if this lasts longer "
                   "than a few seconds, look at their logs")  # fmt: skip
    elif len(versions) == 1:
        yield ok("servers", f"{count(len(items), 'server')}, and one leads")
