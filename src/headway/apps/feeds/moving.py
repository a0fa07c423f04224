"""What happens to articles when a subscription is led to another source, or two sources turn out to
be one.
"""

from __future__ import annotations

from headway.store.tables import Write

# A row is (tenant, feed, source). Entries of a feed that lead to articles of another source, where
# it was before, lead to those of the same identity here. Nobody has an article twice in one feed,
# not even somebody who went there and came back.
LEAD_TO_TWINS = Write(
    sqlite="update feed_entries as kept set article = chosen.twin from ("
    "select min(entry.id) as entry, twin.id as twin from jsonb_each(?1) as given "
    "join feed_entries as entry on entry.tenant = given.value ->> 0 "
    "and entry.feed = given.value ->> 1 "
    "join feed_articles as old on old.id = entry.article and old.owner = '' "
    "and old.source <> given.value ->> 2 "
    "join feed_articles as twin on twin.source = given.value ->> 2 and twin.owner = '' "
    "and twin.identity = old.identity where not exists (select 1 from feed_entries as there "
    "where there.tenant = entry.tenant and there.feed = entry.feed and there.article = twin.id) "
    "group by entry.tenant, entry.feed, twin.id) as chosen where kept.id = chosen.entry",
    postgres="update feed_entries as kept set article = chosen.twin from ("
    "select min(entry.id) as entry, twin.id as twin "
    "from jsonb_array_elements($1) as given (cells) "
    "join feed_entries as entry on entry.tenant = given.cells ->> 0 "
    "and entry.feed = given.cells ->> 1 "
    "join feed_articles as old on old.id = entry.article and old.owner = '' "
    "and old.source <> (given.cells ->> 2)::bigint "
    "join feed_articles as twin on twin.source = (given.cells ->> 2)::bigint and twin.owner = '' "
    "and twin.identity = old.identity where not exists (select 1 from feed_entries as there "
    "where there.tenant = entry.tenant and there.feed = entry.feed and there.article = twin.id) "
    "group by entry.tenant, entry.feed, twin.id) as chosen where kept.id = chosen.entry",
    types=("text", "text", "bigint"),
    name="entries that lead to the same article elsewhere",
)

# A row is (source). It is at another address from now on. Those who have its articles keep them;
# nobody else sees what was published elsewhere, unless it is published here, too.
WITHDRAW_ARTICLES = Write(
    sqlite="update feed_articles set announced = 0 where owner = '' and source in "
    "(select given.value ->> 0 from jsonb_each(?1) as given)",
    postgres="update feed_articles as kept set announced = 0 "
    "from jsonb_array_elements($1) as given (cells) "
    "where kept.owner = '' and kept.source = (given.cells ->> 0)::bigint",
    types=("bigint",),
    name="articles of another address",
    table="feed_articles",
)

# A row is (from, to). Articles that the new place does not know become its own, so that whoever has
# them does not have them twice when they come. Nobody else sees them before that: what somebody has
# read elsewhere is not what this place has published.
ADOPT_ARTICLES = Write(
    sqlite="update feed_articles as kept set source = given.value ->> 1, "
    "announced = case when kept.owner = '' then 0 else kept.announced end from jsonb_each(?1) as "
    "given where kept.source = given.value ->> 0 and not exists (select 1 from feed_articles as "
    "twin where twin.source = given.value ->> 1 and twin.owner = kept.owner "
    "and twin.identity = kept.identity)",
    postgres="update feed_articles as kept set source = (given.cells ->> 1)::bigint, "
    "announced = case when kept.owner = '' then 0 else kept.announced end "
    "from jsonb_array_elements($1) as given (cells) where kept.source = "
    "(given.cells ->> 0)::bigint and not exists (select 1 from feed_articles as twin "
    "where twin.source = (given.cells ->> 1)::bigint and twin.owner = kept.owner "
    "and twin.identity = kept.identity)",
    types=("bigint", "bigint"),
    name="articles that have moved",
)
