"""What happens to articles when two sources turn out to be one. A row is (from, to)."""

from __future__ import annotations

from headway.store.tables import Write

# Entries of subscriptions that have moved lead to the article of the same identity at the new
# place. It comes after the subscriptions in the same commit, so it sees where they belong.
REPOINT_TO_TWINS = Write(
    sqlite="update feed_entries as kept set article = twin.id from jsonb_each(?1) as given, "
    "feed_articles as old, feed_articles as twin, feed_subscriptions as theirs "
    "where old.source = given.value ->> 0 and old.owner = '' and kept.article = old.id "
    "and twin.source = given.value ->> 1 and twin.owner = '' and twin.identity = old.identity "
    "and theirs.tenant = kept.tenant and theirs.id = kept.feed "
    "and theirs.source = given.value ->> 1",
    postgres="update feed_entries as kept set article = twin.id "
    "from jsonb_array_elements($1) as given (cells), feed_articles as old, feed_articles as twin, "
    "feed_subscriptions as theirs where old.source = (given.cells ->> 0)::bigint "
    "and old.owner = '' and kept.article = old.id and twin.source = (given.cells ->> 1)::bigint "
    "and twin.owner = '' and twin.identity = old.identity and theirs.tenant = kept.tenant "
    "and theirs.id = kept.feed and theirs.source = (given.cells ->> 1)::bigint",
    types=("bigint", "bigint"),
    name="entries that lead to the same article elsewhere",
)

# Articles that the new place does not know become its own, so that they are known when they come.
ADOPT_ARTICLES = Write(
    sqlite="update feed_articles as kept set source = given.value ->> 1 from jsonb_each(?1) as "
    "given where kept.source = given.value ->> 0 and not exists (select 1 from feed_articles as "
    "twin where twin.source = given.value ->> 1 and twin.owner = kept.owner "
    "and twin.identity = kept.identity)",
    postgres="update feed_articles as kept set source = (given.cells ->> 1)::bigint "
    "from jsonb_array_elements($1) as given (cells) where kept.source = "
    "(given.cells ->> 0)::bigint and not exists (select 1 from feed_articles as twin "
    "where twin.source = (given.cells ->> 1)::bigint and twin.owner = kept.owner "
    "and twin.identity = kept.identity)",
    types=("bigint", "bigint"),
    name="articles that have moved",
)
