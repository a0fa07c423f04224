"""Where a store is: a libpq address, and the schema that our tables are in."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from headway.errors import StoreError

SCHEMA = "headway"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]{0,47}")


class Address(NamedTuple):
    conninfo: str
    schema: str
    name: str  # for people, without user and password

    @property
    def channel(self) -> str:
        """Where the bell rings. Others in the same database have their own."""
        return f"headway_{self.schema}"


def parse(url: str) -> Address:
    """`postgresql://user:password@host:port/database?schema=name`, and what else libpq knows."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", SCHEMA)
    if not _PLAIN.fullmatch(schema) or schema.startswith("pg_"):
        raise StoreError(
            f"{schema!r} cannot be the schema; use small letters, digits and underscores"
        )
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    conninfo = parts._replace(query=query, scheme="postgresql").geturl()
    try:
        known = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        raise StoreError(f"the address of the database is not understood: {error}") from None
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port = f":{known['port']}" if "port" in known else ""
    tail = "" if schema == SCHEMA else f"?schema={schema}"
    return Address(conninfo, schema, f"postgresql://{host}{port}/{known.get('dbname', '')}{tail}")
