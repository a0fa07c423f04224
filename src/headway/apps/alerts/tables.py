"""What is known of alerts over a restart: which have begun and were told, and who led last."""

from __future__ import annotations

from headway.store.tables import Table

APP = "alerts"

MIGRATIONS = (
    """
    create table alerts_open (
        id text primary key,
        alert text not null,
        began_at double precision not null,
        told_at double precision
    );
    create table alerts_facts (name text primary key, value text not null);
    """,
)

OPEN = Table(
    "alerts_open",
    {"id": "text", "alert": "text", "began_at": "double", "told_at": "double"},
    ("id",),
)
FACTS = Table("alerts_facts", {"name": "text", "value": "text"}, ("name",))
PUT_OPEN, DROP_OPEN = OPEN.put(), OPEN.drop()
PUT_FACT = FACTS.put()
SELECT_OPEN = "select id, alert, began_at, told_at from alerts_open"
SELECT_FACT = "select value from alerts_facts where name = ?"
