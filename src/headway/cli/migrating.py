"""`headway migrate`: the store's schema, brought up to date."""

from __future__ import annotations

from headway.cli.asking import Call, asks
from headway.cli.client import CommandFailed
from headway.cli.storage import found_version, newest_version
from headway.store import open_store


@asks
def migrate(call: Call) -> None:
    """Bring the store's schema up to date. Servers do so by themselves when they start."""
    where = call.where
    if where.server is not None:
        raise CommandFailed("a schema is brought up to date where the store is: name it with "
                            "--data or --dsn, without --server")  # fmt: skip
    before, newest = _versions(call)
    running = where.running()
    if before < newest and running is not None:
        raise CommandFailed(f"a server runs on {where.name} (process {running.pid}), and an older "
                            "one would not know the new schema; stop it first")  # fmt: skip
    if where.dsn is None and before == 0:
        where.make()
    open_store(where.store_url).close()
    after = found_version(where)
    if call.out.as_json:
        call.out.line({"before": before, "after": after, "changed": before != after}, indent=2)
    elif before == after:
        call.out.say(f"{where.name} has schema version {after} already")
    elif before == 0:
        call.out.say(f"{where.name} is new, with schema version {after}")
    else:
        call.out.say(f"{where.name} had schema version {before}, and now has {after}")


def _versions(call: Call) -> tuple[int, int]:
    before, newest = found_version(call.where), newest_version(call.where)
    if before > newest:
        raise CommandFailed(f"{call.where.name} has schema version {before}, and this Headway "
                            f"knows versions up to {newest}; upgrade Headway")  # fmt: skip
    return before, newest
