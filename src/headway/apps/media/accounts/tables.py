"""What is kept of accounts. Their cookies are sealed."""

from __future__ import annotations

from headway.apps.media.accounts.pool import Account
from headway.store.tables import Table

# For the migrations of the application, in the words of every store.
ACCOUNTS_MIGRATION = """
    create table media_accounts (
        id bigint primary key,
        name text not null,
        site text not null,
        sealed text not null,
        enabled bigint not null,
        status text not null,
        reason text not null,
        check_url text,
        uses bigint not null,
        failures bigint not null,
        load double precision not null,
        load_at double precision not null,
        last_used_at double precision,
        cooled_until double precision not null,
        pushbacks bigint not null,
        strikes text not null,
        checked_at double precision,
        expires_at double precision,
        created_at double precision not null,
        changed_at double precision not null
    );
"""

TEXT, WHOLE, REAL = "text", "bigint", "double"

ACCOUNTS = Table(
    "media_accounts",
    {
        "id": WHOLE, "name": TEXT, "site": TEXT, "sealed": TEXT, "enabled": WHOLE,
        "status": TEXT, "reason": TEXT, "check_url": TEXT, "uses": WHOLE, "failures": WHOLE,
        "load": REAL, "load_at": REAL, "last_used_at": REAL, "cooled_until": REAL,
        "pushbacks": WHOLE, "strikes": TEXT, "checked_at": REAL, "expires_at": REAL,
        "created_at": REAL, "changed_at": REAL,
    },
    ("id",),
)  # fmt: skip
assert tuple(ACCOUNTS.columns) == Account._fields  # a row is an account

PUT_ACCOUNT, DROP_ACCOUNT = ACCOUNTS.put(), ACCOUNTS.drop()
SELECT_ACCOUNTS = f"select {', '.join(ACCOUNTS.columns)} from media_accounts order by id"
