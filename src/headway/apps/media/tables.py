"""What the archive keeps in the store.

Items are written with the commit that ends the job which found, got or lost them, so what the
store says and what the queue does never come apart.
"""

from __future__ import annotations

from headway.apps.media.accounts.tables import ACCOUNTS_MIGRATION
from headway.store.tables import Table, Write

APP = "media"

_MIGRATION = """
    create table media_subscriptions (
        id bigint primary key,
        tenant text not null,
        url text not null,
        site text not null,
        preset text not null,
        title text,
        found_title text,
        quality text not null,
        filters text not null,
        template text not null,
        nfo text not null,
        depth bigint not null,
        interval_s double precision not null,
        download bigint not null,
        with_cookie bigint not null,
        paused bigint not null,
        podcast text,
        wanted bigint not null,
        cursor bigint not null,
        walk_at double precision,
        is_complete bigint not null,
        total bigint,
        total_how text,
        total_at double precision,
        listed_at double precision,
        full_at double precision,
        error text,
        failures bigint not null,
        created_at double precision not null
    );
    create table media_items (
        id bigint primary key,
        tenant text not null,
        subscription bigint not null,
        key text not null,
        url text not null,
        title text,
        uploader text,
        published_at double precision,
        duration_s double precision,
        views bigint,
        place bigint,
        state text not null,
        reason text,
        failure text,
        failures bigint not null,
        files text,
        size_bytes bigint,
        found_at double precision not null,
        listed_at double precision not null,
        done_at double precision,
        gone_at double precision,
        changed_at double precision not null,
        unique (tenant, subscription, key)
    );
    create index media_items_in_state on media_items (subscription, state);
    create index media_items_of_tenant on media_items (tenant, state, id);
    create index media_items_known on media_items (tenant, key);
    create table media_facts (name text primary key, value text not null);
"""

# A long list is gone through in parts, and an item is found by its address: not by looking at all
# of the subscription. The beginning of an address is enough, and fits into every index.
_FOR_LONG_LISTS = """
    drop index media_items_in_state;
    create index media_items_in_state on media_items (subscription, state, id);
    create index media_items_at on media_items (subscription, substr(url, 1, 200));
"""

MIGRATIONS = (_MIGRATION + ACCOUNTS_MIGRATION, _FOR_LONG_LISTS)

TEXT, WHOLE, REAL = "text", "bigint", "double"

SUBSCRIPTIONS = Table(
    "media_subscriptions",
    {
        "id": WHOLE, "tenant": TEXT, "url": TEXT, "site": TEXT, "preset": TEXT, "title": TEXT,
        "found_title": TEXT, "quality": TEXT, "filters": TEXT, "template": TEXT, "nfo": TEXT,
        "depth": WHOLE, "interval_s": REAL, "download": WHOLE, "with_cookie": WHOLE,
        "paused": WHOLE, "podcast": TEXT, "wanted": WHOLE, "cursor": WHOLE, "walk_at": REAL,
        "is_complete": WHOLE, "total": WHOLE, "total_how": TEXT, "total_at": REAL,
        "listed_at": REAL, "full_at": REAL, "error": TEXT, "failures": WHOLE, "created_at": REAL,
    },
    ("id",),
)  # fmt: skip
_ITEM = {
    "id": WHOLE, "tenant": TEXT, "subscription": WHOLE, "key": TEXT, "url": TEXT, "title": TEXT,
    "uploader": TEXT, "published_at": REAL, "duration_s": REAL, "views": WHOLE, "place": WHOLE,
    "state": TEXT, "reason": TEXT, "failure": TEXT, "failures": WHOLE, "files": TEXT,
    "size_bytes": WHOLE, "found_at": REAL, "listed_at": REAL, "done_at": REAL,
    "gone_at": REAL, "changed_at": REAL,
}  # fmt: skip
ITEMS = Table("media_items", _ITEM, ("id",))
ITEMS_BY_KEY = Table("media_items", _ITEM, ("tenant", "subscription", "key"))
FACTS = Table("media_facts", {"name": TEXT, "value": TEXT}, ("name",))

PUT_SUBSCRIPTION, DROP_SUBSCRIPTION = SUBSCRIPTIONS.put(), SUBSCRIPTIONS.drop()
ADD_ITEM = ITEMS_BY_KEY.add()
# What a list says about an item that is known.
TELL_ITEM = ITEMS.change(
    "title", "uploader", "published_at", "duration_s", "views", "place", "listed_at", "gone_at"
)
BLAME_ITEM = ITEMS.change("failure", "reason", "failures", "changed_at")
KEEP_ITEM = ITEMS.change(  # it is on disk
    "state", "reason", "failure", "failures", "title", "uploader", "published_at", "duration_s",
    "views", "files", "size_bytes", "done_at", "changed_at",
)  # fmt: skip
PUT_FACT = FACTS.put()

# A row is (subscription,): what nobody subscribes to any more. Files stay where they are.
DROP_ITEMS = Write(
    sqlite="delete from media_items where subscription in "
    "(select given.value ->> 0 from jsonb_each(?1) as given)",
    postgres="delete from media_items as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.subscription = (given.cells ->> 0)::bigint",
    types=(WHOLE,),
    name="items of subscriptions that are gone",
    table="media_items",
)
# A row is (item, state, reason, failure, at, only if in this state).
MOVE_ITEM_FROM = Write(
    sqlite="update media_items as kept set state = given.value ->> 1, reason = given.value ->> 2, "
    "failure = given.value ->> 3, changed_at = given.value ->> 4 from jsonb_each(?1) as given "
    "where kept.id = given.value ->> 0 and kept.state = given.value ->> 5",
    postgres="update media_items as kept set state = given.cells ->> 1, "
    "reason = given.cells ->> 2, failure = given.cells ->> 3, "
    "changed_at = (given.cells ->> 4)::double precision "
    "from jsonb_array_elements($1) as given (cells) "
    "where kept.id = (given.cells ->> 0)::bigint and kept.state = given.cells ->> 5",
    types=(WHOLE, TEXT, TEXT, TEXT, REAL, TEXT),
    name="items that move on",
    table="media_items",
)
# A row is (subscription, since when, now): what a list that was read to its end has no more.
MARK_GONE = Write(
    sqlite="update media_items as kept set gone_at = given.value ->> 2 from jsonb_each(?1) "
    "as given where kept.subscription = given.value ->> 0 and kept.gone_at is null "
    "and kept.listed_at < given.value ->> 1",
    postgres="update media_items as kept set gone_at = (given.cells ->> 2)::double precision "
    "from jsonb_array_elements($1) as given (cells) where kept.subscription = "
    "(given.cells ->> 0)::bigint and kept.gone_at is null "
    "and kept.listed_at < (given.cells ->> 1)::double precision",
    types=(WHOLE, REAL, REAL),
    name="items that the list has no more",
    table="media_items",
)
# A row is (item, tenant, state, reason, failure, at): its job has ended. Whoever puts a job can
# name any item, so it counts only for those of its tenant.
END_ITEM = Write(
    sqlite="update media_items as kept set state = given.value ->> 2, reason = given.value ->> 3, "
    "failure = given.value ->> 4, changed_at = given.value ->> 5 from jsonb_each(?1) as given "
    "where kept.id = given.value ->> 0 and kept.tenant = given.value ->> 1 "
    "and kept.state = 'queued'",
    postgres="update media_items as kept set state = given.cells ->> 2, "
    "reason = given.cells ->> 3, failure = given.cells ->> 4, "
    "changed_at = (given.cells ->> 5)::double precision "
    "from jsonb_array_elements($1) as given (cells) "
    "where kept.id = (given.cells ->> 0)::bigint and kept.tenant = given.cells ->> 1 "
    "and kept.state = 'queued'",
    types=(WHOLE, TEXT, TEXT, TEXT, TEXT, REAL),
    name="items whose jobs have ended",
    table="media_items",
)
# A row is (item, tenant, at): its job has ended, and so has the wait of others that are at the same
# address and had joined it.
FREE_TWINS = Write(
    sqlite="update media_items as kept set state = 'found', changed_at = given.value ->> 2 "
    "from jsonb_each(?1) as given join media_items as one on one.id = given.value ->> 0 "
    "and one.tenant = given.value ->> 1 where kept.subscription = one.subscription "
    "and substr(kept.url, 1, 200) = substr(one.url, 1, 200) "
    "and kept.state = 'queued' and kept.tenant = one.tenant and kept.url = one.url "
    "and kept.id <> one.id",
    postgres="update media_items as kept set state = 'found', "
    "changed_at = (given.cells ->> 2)::double precision "
    "from jsonb_array_elements($1) as given (cells) join media_items as one "
    "on one.id = (given.cells ->> 0)::bigint and one.tenant = given.cells ->> 1 "
    "where kept.subscription = one.subscription "
    "and substr(kept.url, 1, 200) = substr(one.url, 1, 200) and kept.state = 'queued' "
    "and kept.tenant = one.tenant and kept.url = one.url and kept.id <> one.id",
    types=(WHOLE, TEXT, REAL),
    name="items that had joined the job of another one",
    table="media_items",
)
