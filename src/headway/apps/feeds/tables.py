"""What the feeds keep in the store.

A source is one address that is fetched, whoever subscribes to it; its articles are kept once. What
a tenant has is a subscription to a source, and an entry for each article it may see, with its
marks. An entry is made when the refresh that found the article ends, so its number grows in the
order in which articles appeared, and a client may ask for what came after the last it has seen.
"""

from __future__ import annotations

from headway.store.tables import Table, Write

APP = "feeds"

_COMMON = """
    create table feed_sources (
        id bigint primary key,
        url text not null unique,
        host text not null,
        title text,
        site_link text,
        description text,
        language text,
        etag text,
        modified text,
        validators_of text,
        body_hash text,
        status text not null,
        error text,
        failures bigint not null,
        tried_at double precision,
        fetched_at double precision,
        due_at double precision not null,
        adapted_s double precision,
        hints text not null,
        created_at double precision not null
    );
    create table feed_subscriptions (
        tenant text not null,
        id text not null,
        source bigint not null,
        url text not null,
        title text,
        folder text not null,
        interval_s double precision not null,
        adaptive bigint not null,
        paused bigint not null,
        paused_at double precision,
        note text,
        led bigint not null,
        created_at double precision not null,
        primary key (tenant, id)
    );
    create index feed_subscriptions_of_source on feed_subscriptions (source);
    create table feed_articles (
        id {number},
        source bigint not null,
        owner text not null,
        identity text not null,
        link text,
        title text,
        author text,
        summary text,
        content text,
        published_at double precision,
        updated_at double precision,
        first_seen_at double precision not null,
        changed_at double precision not null,
        hash text not null,
        enclosures text not null,
        categories text not null,
        announced bigint not null,
        unique (source, owner, identity)
    );
    create table feed_entries (
        id {number},
        tenant text not null,
        feed text not null,
        article bigint not null,
        at double precision not null,
        seen_at double precision not null,
        is_read bigint not null,
        is_starred bigint not null,
        changed_at double precision not null,
        unique (tenant, feed, article)
    );
    create index feed_entries_of_article on feed_entries (article);
    create index feed_entries_of_feed on feed_entries (tenant, feed, at, id);
    create index feed_entries_by_time on feed_entries (tenant, at, id);
    create index feed_entries_unread on feed_entries (tenant, feed) where is_read = 0;
    create index feed_entries_starred on feed_entries (tenant, at) where is_starred = 1;
    create table feed_rules (
        tenant text not null,
        id text not null,
        place bigint not null,
        settings text not null,
        created_at double precision not null,
        primary key (tenant, id)
    );
    create table feed_rounds (
        id text primary key,
        tenant text not null,
        kind text not null,
        total bigint not null,
        done bigint not null,
        failed bigint not null,
        skipped bigint not null,
        new_count bigint not null,
        report text not null,
        created_at double precision not null,
        finished_at double precision
    );
    create index feed_rounds_of_tenant on feed_rounds (tenant, created_at);
    create table feed_round_items (
        round text not null,
        feed text not null,
        source bigint not null,
        state text not null,
        new_count bigint not null,
        error text,
        primary key (round, feed)
    );
"""

# Lists of what is unread, and what came after the last that a client has seen. (SQLite would not
# take the first index, if `is_read` were not one of its columns.) A document says which articles
# its source had when it was last read, see `storing`.
_FOR_READING = """
    drop index feed_entries_unread;
    create index feed_entries_unread
        on feed_entries (tenant, is_read, at, id, feed) where is_read = 0;
    create index feed_entries_by_number on feed_entries (tenant, id);
    create table feed_documents (source bigint primary key, articles text not null);
"""

# From an article that a search has found to the entry of one tenant, however many have it.
_FOR_SEARCHING = """
    drop index feed_entries_of_article;
    create index feed_entries_of_article on feed_entries (article, tenant);
"""

MIGRATIONS = (
    {
        "sqlite": _COMMON.format(number="integer primary key autoincrement")
        + """
        create virtual table feed_search using fts5 (
            title, body, content = '', contentless_delete = 1,
            tokenize = "unicode61 remove_diacritics 2"
        );
        """,
        "postgres": _COMMON.format(number="bigint generated by default as identity primary key")
        + """
        create table feed_search (article bigint primary key, words tsvector not null);
        create index feed_search_words on feed_search using gin (words);
        """,
    },
    {
        # The words come ready from `searching`; a store only compares them. SQLite keeps the first
        # two letters of each, too: it would have to look at very many words that begin so.
        "sqlite": _FOR_READING
        + """
        drop table feed_search;
        create virtual table feed_search using fts5 (
            title, body, content = '', contentless_delete = 1, prefix = '2', tokenize = "ascii"
        );
        """,
        "postgres": _FOR_READING
        + """
        alter table feed_search add column text text not null default '';
        """,
    },
    _FOR_SEARCHING,
)

TEXT, WHOLE, REAL = "text", "bigint", "double"

SOURCES = Table(
    "feed_sources",
    {
        "id": WHOLE, "url": TEXT, "host": TEXT, "title": TEXT, "site_link": TEXT,
        "description": TEXT, "language": TEXT, "etag": TEXT, "modified": TEXT,
        "validators_of": TEXT, "body_hash": TEXT, "status": TEXT, "error": TEXT,
        "failures": WHOLE, "tried_at": REAL, "fetched_at": REAL, "due_at": REAL,
        "adapted_s": REAL, "hints": TEXT, "created_at": REAL,
    },
    ("id",),
)  # fmt: skip
SUBSCRIPTIONS = Table(
    "feed_subscriptions",
    {
        "tenant": TEXT, "id": TEXT, "source": WHOLE, "url": TEXT, "title": TEXT, "folder": TEXT,
        "interval_s": REAL, "adaptive": WHOLE, "paused": WHOLE, "paused_at": REAL, "note": TEXT,
        "led": WHOLE, "created_at": REAL,
    },
    ("tenant", "id"),
)  # fmt: skip
ARTICLES = Table(  # without their numbers, which the store gives them
    "feed_articles",
    {
        "source": WHOLE, "owner": TEXT, "identity": TEXT, "link": TEXT, "title": TEXT,
        "author": TEXT, "summary": TEXT, "content": TEXT, "published_at": REAL,
        "updated_at": REAL, "first_seen_at": REAL, "changed_at": REAL, "hash": TEXT,
        "enclosures": TEXT, "categories": TEXT, "announced": WHOLE,
    },
    ("source", "owner", "identity"),
)  # fmt: skip
ARTICLES_BY_NUMBER = Table("feed_articles", {"id": WHOLE, "announced": WHOLE}, ("id",))
ENTRIES = Table(  # likewise
    "feed_entries",
    {
        "tenant": TEXT, "feed": TEXT, "article": WHOLE, "at": REAL, "seen_at": REAL,
        "is_read": WHOLE, "is_starred": WHOLE, "changed_at": REAL,
    },
    ("tenant", "feed", "article"),
)  # fmt: skip
DOCUMENTS = Table("feed_documents", {"source": WHOLE, "articles": TEXT}, ("source",))
RULES = Table(
    "feed_rules",
    {"tenant": TEXT, "id": TEXT, "place": WHOLE, "settings": TEXT, "created_at": REAL},
    ("tenant", "id"),
)
ROUNDS = Table(
    "feed_rounds",
    {
        "id": TEXT, "tenant": TEXT, "kind": TEXT, "total": WHOLE, "done": WHOLE, "failed": WHOLE,
        "skipped": WHOLE, "new_count": WHOLE, "report": TEXT, "created_at": REAL,
        "finished_at": REAL,
    },
    ("id",),
)  # fmt: skip
ROUND_ITEMS = Table(
    "feed_round_items",
    {
        "round": TEXT, "feed": TEXT, "source": WHOLE, "state": TEXT, "new_count": WHOLE,
        "error": TEXT,
    },
    ("round", "feed"),
)  # fmt: skip

PUT_SOURCE, DROP_SOURCE = SOURCES.put(), SOURCES.drop()
PUT_SUBSCRIPTION, DROP_SUBSCRIPTION = SUBSCRIPTIONS.put(), SUBSCRIPTIONS.drop()
ADD_ARTICLE = ARTICLES.add()
CHANGE_ARTICLE = ARTICLES.change(
    "link", "title", "author", "summary", "content", "published_at", "updated_at", "changed_at",
    "hash", "enclosures", "categories",
)  # fmt: skip
ANNOUNCE = ARTICLES_BY_NUMBER.change("announced")
ADD_ENTRY = ENTRIES.add()
PUT_DOCUMENT, DROP_DOCUMENT = DOCUMENTS.put(), DOCUMENTS.drop()
PUT_RULE, DROP_RULE = RULES.put(), RULES.drop()
PUT_ROUND = ROUNDS.put()
PUT_ROUND_ITEM = ROUND_ITEMS.put()

# A row is (tenant, feed): what somebody no longer subscribes to.
DROP_ENTRIES_OF_FEED = Write(
    sqlite="delete from feed_entries where (tenant, feed) in "
    "(select given.value ->> 0, given.value ->> 1 from jsonb_each(?1) as given)",
    postgres="delete from feed_entries as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.tenant = given.cells ->> 0 and kept.feed = given.cells ->> 1",
    types=(TEXT, TEXT),
    name="entries of feeds that are gone",
    table="feed_entries",
)
# A row is (tenant, article, article): entries of the first are entries of the second from now on,
# unless their feed has one of that already.
REPOINT_ENTRIES = Write(
    sqlite="update feed_entries as kept set article = given.value ->> 2 from jsonb_each(?1) as "
    "given where kept.article = given.value ->> 1 and kept.tenant = given.value ->> 0 "
    "and not exists (select 1 from feed_entries as other where other.tenant = kept.tenant "
    "and other.feed = kept.feed and other.article = given.value ->> 2)",
    postgres="update feed_entries as kept set article = (given.cells ->> 2)::bigint from "
    "jsonb_array_elements($1) as given (cells) where kept.article = (given.cells ->> 1)::bigint "
    "and kept.tenant = given.cells ->> 0 and not exists (select 1 from feed_entries as other "
    "where other.tenant = kept.tenant and other.feed = kept.feed "
    "and other.article = (given.cells ->> 2)::bigint)",
    types=(TEXT, WHOLE, WHOLE),
    name="entries that lead to another article",
    table="feed_entries",
)
# A row is (source, owner, identity, title, text): what an article is found by, see `searching`. No
# word of its title is beside one of its text.
PUT_SEARCH = Write(
    sqlite="insert or replace into feed_search (rowid, title, body) "
    "select kept.id, given.value ->> 3, given.value ->> 4 from jsonb_each(?1) as given "
    "cross join feed_articles as kept on kept.source = given.value ->> 0 "
    "and kept.owner = given.value ->> 1 and kept.identity = given.value ->> 2",
    postgres="insert into feed_search (article, words, text) select kept.id, "
    "array_to_tsvector(array_remove(string_to_array((given.cells ->> 3) || ' ' || "
    "(given.cells ->> 4), ' '), '')), "
    "' ' || (given.cells ->> 3) || ' / ' || (given.cells ->> 4) || ' ' "
    "from jsonb_array_elements($1) as given (cells) join feed_articles as kept "
    "on kept.source = (given.cells ->> 0)::bigint and kept.owner = given.cells ->> 1 "
    "and kept.identity = given.cells ->> 2 "
    "on conflict (article) do update set words = excluded.words, text = excluded.text",
    types=(WHOLE, TEXT, TEXT, TEXT, TEXT),
    name="words to search for",
)
