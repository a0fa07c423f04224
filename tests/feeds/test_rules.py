"""Rules: what they say about an article, and that they act on their tenant's articles alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.feeds import applying
from headway.apps.feeds.applying import APPLY
from headway.apps.feeds.rules import (
    MAX_RULES,
    PLAIN,
    Condition,
    Readable,
    Rule,
    Verdict,
    fault_in,
    judge,
    matches,
    readable,
)
from headway.apps.feeds.ruling import KeptRule, TooManyRules
from headway.store.records import NewJob
from tests.feeds.feeds_world import FeedsWorld, Site, entry

BLOG = "https://blog.example/feed"
NEWS = "https://news.example/feed"

words = st.text("aäAß İ好x/", min_size=1, max_size=6)
conditions = st.builds(
    Condition,
    text=words,
    field=st.sampled_from(["any", "title", "author", "link", "category", "text"]),
    test=st.sampled_from(["contains", "lacks", "is"]),
)
rules = st.builds(
    Rule,
    name=st.just("a rule"),
    actions=st.lists(st.sampled_from(["read", "star", "drop"]), max_size=3).map(tuple),
    conditions=st.lists(conditions, max_size=3).map(tuple),
    feeds=st.lists(st.sampled_from(["1", "2"]), max_size=1).map(tuple),
    folders=st.lists(st.sampled_from(["a", "a/b", "ab"]), max_size=1).map(tuple),
    enabled=st.booleans(),
)
articles = st.builds(
    readable,
    title=st.none() | words,
    author=st.none() | words,
    link=st.none() | words,
    categories=st.lists(words, max_size=2),
    text=words,
)


def article(**more: Any) -> Readable:
    facts: dict[str, Any] = {
        "title": "Rust 2.0 is out", "author": "Ann Oakley", "link": "https://blog.example/rust",
        "categories": ["Languages", "News"], "text": "A new compiler for Ärzte",
    }  # fmt: skip
    return readable(**{**facts, **more})


def rule(*texts: str, actions: tuple[Any, ...] = ("read",), **more: Any) -> Rule:
    field, test = more.pop("field", "any"), more.pop("test", "contains")
    sought = tuple(Condition(text, field, test) for text in texts)
    return Rule("a rule", actions, sought, **more)


# ---------------------------------------------------------------------- what a rule is about


@pytest.mark.parametrize(("field", "test", "text", "holds"), [
    ("title", "contains", "RUST", True),
    ("title", "contains", "compiler", False),
    ("title", "is", " rust 2.0 IS out ", True),
    ("title", "is", "rust", False),
    ("title", "lacks", "python", True),
    ("title", "lacks", "rust", False),
    ("author", "contains", "oak", True),
    ("link", "contains", "blog.example/", True),
    ("category", "is", "news", True),
    ("category", "is", "new", False),
    ("category", "contains", "lang", True),
    ("category", "lacks", "sport", True),
    ("text", "contains", "ärzte", True),
    ("text", "contains", "rust", False),
    ("any", "contains", "oakley", True),
    ("any", "is", "news", True),
    ("any", "lacks", "compiler", False),
    ("any", "contains", ".*", False),
])  # fmt: skip
def test_each_test_in_each_place(field: Any, test: Any, text: str, holds: bool) -> None:
    assert matches(rule(text, field=field, test=test), "1", "", article()) is holds


def test_what_is_missing_contains_nothing_and_lacks_everything() -> None:
    bare = readable(title=None, author=None, link=None, categories=(), text="")
    for field in ("any", "title", "author", "link", "category", "text"):
        assert not matches(rule("x", field=field), "1", "", bare)
        assert matches(rule("x", field=field, test="lacks"), "1", "", bare)


@pytest.mark.parametrize(("feeds", "folders", "folder", "there"), [
    ((), (), "", True),
    (("1",), (), "", True),
    (("2",), (), "", False),
    ((), ("a",), "a", True),
    ((), ("a",), "a/b", True),
    ((), ("a/b",), "a", False),
    ((), ("a",), "ab", False),
    (("2",), ("a",), "a", True),
])  # fmt: skip
def test_a_rule_is_for_feeds_and_for_folders_with_those_inside(
    feeds: tuple[str, ...], folders: tuple[str, ...], folder: str, there: bool
) -> None:
    wanted = rule("rust", feeds=feeds, folders=folders)
    assert matches(wanted, "1", folder, article()) is there


@given(st.lists(rules, max_size=4), articles)
def test_what_several_rules_say_is_what_each_says_and_a_star_keeps(
    several: list[Rule], found: Readable
) -> None:
    said = {
        action
        for each in several
        if each.enabled and matches(each, "1", "a", found)
        for action in each.actions
    }
    verdict = judge(several, "1", "a", found)
    assert verdict.is_read == ("read" in said)
    assert verdict.is_starred == ("star" in said)
    assert verdict.dropped == ("drop" in said and "star" not in said)
    assert judge(reversed(several), "1", "a", found) == verdict
    assert judge([*several, *several], "1", "a", found) == verdict


@given(rules, articles)
def test_one_more_condition_never_makes_a_rule_hold_more_often(one: Rule, found: Readable) -> None:
    for number in range(len(one.conditions)):
        fewer = msgspec.structs.replace(one, conditions=one.conditions[:number])
        assert matches(fewer, "1", "a", found) or not matches(one, "1", "a", found)


@given(conditions.filter(lambda each: each.test != "is"), articles)
def test_what_contains_something_does_not_lack_it(one: Condition, found: Readable) -> None:
    other = "lacks" if one.test == "contains" else "contains"
    opposite = msgspec.structs.replace(one, test=other)
    held = [matches(Rule("", (), (each,)), "1", "", found) for each in (one, opposite)]
    assert held in ([True, False], [False, True])


@given(rules, articles)
def test_a_rule_that_is_off_says_nothing(one: Rule, found: Readable) -> None:
    assert judge([msgspec.structs.replace(one, enabled=False)], "1", "a", found) == PLAIN


@pytest.mark.parametrize(("wrong", "why"), [
    (rule("x", actions=()), "say what"),
    (rule("x", actions=("star", "drop")), "choose"),
    (rule(actions=("drop",)), "every article"),
    (rule("   "), "spaces"),
])  # fmt: skip
def test_rules_that_nobody_can_want_are_refused(wrong: Rule, why: str) -> None:
    assert why in (fault_in(wrong) or "")


def test_a_rule_for_all_of_a_feed_needs_no_condition() -> None:
    assert fault_in(rule(feeds=("1",))) is None
    assert judge([rule(feeds=("1",))], "1", "", article()) == Verdict(is_read=True)


# ---------------------------------------------------------------------- on articles that come


@pytest.fixture
def world(worlds: None) -> Iterator[FeedsWorld]:  # noqa: ARG001
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2)])
        yield world


def add(world: FeedsWorld, made: Rule, tenant: str = "ann", place: int | None = None) -> str:
    id = f"{tenant}-{len(world.feeds.ruling.of_tenant(tenant))}"
    world.turn(lambda now: world.feeds.ruling.add(tenant, id, made, place, now))
    return id


def marks(world: FeedsWorld, tenant: str = "ann") -> dict[str, str]:
    """Of each article: r for read, s for starred."""
    rows = world.rows(
        "select a.title, e.is_read, e.is_starred from feed_entries e "
        "join feed_articles a on a.id = e.article where e.tenant = ? order by e.id",
        tenant,
    )
    return {title: "r" * read + "s" * star for title, read, star in rows}


def test_rules_act_on_what_arrives_for_their_tenant_and_nobody_else(world: FeedsWorld) -> None:
    add(world, rule("Article 1"))
    add(world, rule("text of 2", field="text", actions=("star",)))
    add(world, rule("Article 3", actions=("drop",)))
    add(world, rule("Article 2", actions=("drop",)), tenant="bob")
    for tenant in ("ann", "bob", "eve"):
        world.subscribe(BLOG, tenant, "1")
    world.web.sites[BLOG].entries.append(entry(3))
    world.run_for("1m")
    assert marks(world) == {"Article 1": "r", "Article 2": "s"}
    assert marks(world, "bob") == {"Article 1": "", "Article 3": ""}
    assert marks(world, "eve") == {"Article 1": "", "Article 2": "", "Article 3": ""}


def test_a_star_keeps_what_another_rule_drops(world: FeedsWorld) -> None:
    add(world, rule("Article", actions=("drop",)))
    add(world, rule("Article 2", actions=("star", "read")))
    world.subscribe(BLOG)
    world.run_for("1m")
    assert marks(world) == {"Article 2": "rs"}


def test_they_hold_for_a_subscription_that_is_filled_with_what_others_read(
    world: FeedsWorld,
) -> None:
    world.subscribe(BLOG, "bob")
    world.run_for("1m")
    add(world, rule("Article 1", actions=("drop",)))
    add(world, rule("Article 2", folders=("tech",)))
    world.subscribe(BLOG, "ann", folder="tech/blogs")
    world.run_for("1m")
    assert marks(world) == {"Article 2": "r"}
    assert marks(world, "bob") == {"Article 1": "", "Article 2": ""}


def test_they_are_followed_from_the_moment_they_change_and_after_a_restart(
    world: FeedsWorld,
) -> None:
    world.subscribe(BLOG)
    world.run_for("1m")
    assert marks(world) == {"Article 1": "", "Article 2": ""}
    id = add(world, rule("Article"))
    world.restart()
    world.web.sites[BLOG].entries.append(entry(3))
    world.run_for("1h")
    assert marks(world)["Article 3"] == "r"
    off = rule("Article", enabled=False)
    world.turn(lambda now: world.feeds.ruling.change("ann", id, off, None, now))
    world.web.sites[BLOG].entries.append(entry(4))
    world.run_for("1h")
    assert marks(world)["Article 4"] == ""
    world.turn(lambda now: world.feeds.ruling.remove("ann", id, now))
    assert world.feeds.rules == {}
    assert world.rows("select id from feed_rules") == []


# ---------------------------------------------------------------------- where they are kept


def test_they_stand_in_their_order_and_move_each_other(world: FeedsWorld) -> None:
    ruling = world.feeds.ruling
    for number in range(3):
        add(world, Rule(str(number), ("read",), (), ("1",)))
    add(world, Rule("first", ("read",), (), ("1",)), place=1)

    def order() -> list[tuple[int, str]]:
        return [(each.place, each.rule.name) for each in ruling.of_tenant("ann")]

    assert order() == [(1, "first"), (2, "0"), (3, "1"), (4, "2")]
    kept: KeptRule = ruling.get("ann", "ann-3")
    world.turn(lambda now: ruling.change("ann", "ann-3", kept.rule, 99, now))
    assert order() == [(1, "0"), (2, "1"), (3, "2"), (4, "first")]
    world.turn(lambda now: ruling.remove("ann", "ann-1", now))
    expected = [(1, "0"), (2, "2"), (3, "first")]
    assert order() == expected
    world.restart()
    assert order() == expected
    assert [each.name for each in world.feeds.rules["ann"]] == ["0", "2", "first"]


def test_a_tenant_has_only_so_many_and_none_of_anybody_else(world: FeedsWorld) -> None:
    for _ in range(MAX_RULES):
        add(world, rule("x"))
    with pytest.raises(TooManyRules):
        add(world, rule("x"))
    assert len(world.feeds.ruling.of_tenant("ann")) == MAX_RULES
    add(world, rule("x"), tenant="bob")
    with pytest.raises(KeyError):
        world.feeds.ruling.get("bob", "ann-0")


# ---------------------------------------------------------------------- on what is there already


def apply(world: FeedsWorld, id: str, tenant: str = "ann") -> dict[str, Any]:
    args = msgspec.json.encode({"tenant": tenant, "rule": id}).decode()
    handle = world.app.enqueue_many((NewJob(APPLY, args, created_at=world.now, lane="feeds"),))[0]
    world.run_for("10s")
    found: dict[str, Any] = handle.result(timeout=0)
    return found


def test_a_rule_is_applied_to_what_its_tenant_has(world: FeedsWorld) -> None:
    world.web.sites[BLOG].entries = [entry(number) for number in range(450)]
    world.web.sites[NEWS] = Site([entry(7, title="Article 7 of the news")])
    for tenant in ("ann", "bob"):
        world.subscribe(BLOG, tenant, "blog")
        world.subscribe(NEWS, tenant, "news")
    world.run_for("1m")
    one = add(world, rule("Article 7", actions=("read", "star"), feeds=("blog",)))
    assert apply(world, one) == {"looked_at": 451, "matched": 11, "changed": 11}
    assert apply(world, one) == {"looked_at": 451, "matched": 11, "changed": 0}
    assert marks(world)["Article 70"] == "rs"
    assert marks(world)["Article 7 of the news"] == ""
    two = add(world, rule("Article", actions=("drop",)))
    assert apply(world, two) == {"looked_at": 451, "matched": 451, "changed": 440}
    assert len(marks(world)) == 11  # those with a star
    assert set(marks(world, "bob").values()) == {""}
    assert len(marks(world, "bob")) == 451


def test_a_rule_about_titles_reads_no_texts(
    world: FeedsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.web.sites[BLOG].entries[0] = entry(1, content="<p>the word</p>")
    world.subscribe(BLOG)
    world.run_for("1m")
    texts: list[str] = []
    monkeypatch.setattr(applying, "html_as_text", lambda html: texts.append(html) or html)
    by_title = Rule("t", ("read",), (Condition("Article 2", "title"),))
    assert apply(world, add(world, by_title))["matched"] == 1
    assert set(texts) == {""}
    by_text = Rule("w", ("star",), (Condition("Article", "title"), Condition("the word", "text")))
    assert apply(world, add(world, by_text))["matched"] == 1
    assert marks(world) == {"Article 1": "s", "Article 2": "r"}


def test_one_that_is_gone_or_somebody_elses_does_nothing(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("1m")
    id = add(world, rule("Article"), tenant="bob")
    assert apply(world, id)["error"] == "the rule is gone"
    assert marks(world) == {"Article 1": "", "Article 2": ""}
