"""Where a store is: a libpq address, and the schema that our tables are in."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from headway.errors import StoreError

SCHEMA = "headway"
UNCLEAR = (
    "the address of the database is not understood; write it as "
    "postgresql://user:password@host:port/database, with %XX for special characters: %40 is @, "
    "%2F is /"
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]{0,47}")


class Address(NamedTuple):
    conninfo: str
    schema: str
    name: str  # for people, without user and password

    @property
    def channel(self) -> str:
        """Where the bell rings. Others in the same database have their own."""
        return f"headway_{self.schema}"

    @property
    def trail_channel(self) -> str:
        """Where whoever follows the trail hears that there is more of it."""
        return f"headway_{self.schema}_trail"


def parse(url: str) -> Address:
    """`postgresql://user:password@host:port/database?schema=name`, and what else libpq knows."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise StoreError(UNCLEAR) from None
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", SCHEMA)
    if not _PLAIN.fullmatch(schema) or schema.startswith("pg_"):
        raise StoreError(
            f"{schema!r} cannot be the schema; use small letters, digits and underscores"
        )
    if parts.netloc.count("@") > 1 or "@" in parts.path:  # half of a password would be shown
        raise StoreError(UNCLEAR)
    # As it is written: libpq has its own way to read it, in which + is no space.
    query = "&".join(each for each in parts.query.split("&") if not each.startswith("schema="))
    conninfo = parts._replace(query=query, scheme="postgresql").geturl()
    try:
        known = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:  # which quotes what it did not understand
        raise StoreError(UNCLEAR) from None
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port = f":{known['port']}" if "port" in known else ""
    tail = "" if schema == SCHEMA else f"?schema={schema}"
    return Address(conninfo, schema, f"postgresql://{host}{port}/{known.get('dbname', '')}{tail}")
