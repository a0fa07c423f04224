"""What a search finds. The same on every store, for the same articles."""

from __future__ import annotations

import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App
from headway.apps.feeds.articles import Wanted, counted, listed
from headway.apps.feeds.searching import (
    MAX_BEGINNINGS,
    MAX_TERMS,
    MAX_TEXT,
    MAX_WORD,
    spaced,
    terms_of,
)
from headway.apps.feeds.storing import keep
from headway.apps.feeds.tables import ADD_ENTRY, APP, MIGRATIONS
from headway.store import Store
from tests.feeds.feeds_world import entry
from tests.postgres import in_memory
from tests.stores import PLACES

NOW = 1_790_000_000.0
ARTICLES = {
    "english": ("The Quick Brown Fox", "<p>It jumps over the <b>lazy</b> dog.</p>"),
    "german": ("Über Größe", "<p>Die Straße in Köln ist schön; Äpfel auch.</p>"),
    "chinese": ("中文全文搜索", "<p>我们今天测试数据库的搜索功能。</p>"),
    "japanese": ("データベース", "<p>がっこうへ行きます</p>"),
    "korean": ("한국어 검색", "<p>데이터베이스를 시험합니다</p>"),
    "mixed": ("Python3中文 and C++", "<p>See foo-bar at https://example.com/path_x?a=1</p>"),
    "emoji": ("Party 🎉 time", "<p>👩‍💻 writes code ❤️</p>"),
    "operators": ("AND OR NOT NEAR", "<p>quote \" star * minus - colon : caret ^ (brackets)</p>"),
    "numbers": ("Version 3.14", "<p>1,000 items &amp; 50% more</p>"),
    "vietnamese": ("Tiếng Việt", "<p>Łódź, Ελλάδα, Ёлка, हिन्दी, العربية</p>"),
    "hidden": ("Tags", "<p title='invisible'>seen</p><script>unseen</script>"),
    "empty": ("", ""),
}  # fmt: skip


@pytest.fixture(scope="module", params=PLACES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
        app = App(PLACES[request.param](Path(directory)))
        store = app.store
        store.install(APP, MIGRATIONS)
        entries = [
            entry(number, title=title or None, content=text or None, guid=name)
            for number, (name, (title, text)) in enumerate(ARTICLES.items())
        ]
        stored = keep(store, 1, entries, NOW)
        rows = [
            (tenant, "f", each.article, each.at + place, NOW, 0, 0, NOW)
            for tenant in ("ann", "bob")
            for place, each in enumerate(stored.arrivals)
        ]
        store.write([(ADD_ENTRY, rows)])
        yield store
        app.close()


def found(store: Store, search: str) -> list[str]:
    """What articles it finds, by the names they have here; the oldest first."""
    names = {f"https://blog.example/{number}": name for number, name in enumerate(ARTICLES)}
    wanted = Wanted(search=search)
    articles = listed(store, "ann", wanted, "oldest", size=100)
    assert counted(store, "ann", wanted) == len(articles)
    return [names[each.link or ""] for each in articles]


@pytest.mark.parametrize(("search", "names"), [
    ("fox", ["english"]),
    ("FOX", ["english"]),
    ("fox lazy", ["english"]),
    ("fox zebra", []),
    ('"lazy dog"', ["english"]),
    ('"dog lazy"', []),
    ('"brown fox"', ["english"]),
    ('"fox it"', []),  # the title is no part of the text
    ("qui*", ["english"]),
    ("qui", []),
    ('"quick bro*"', []),  # in quotes, a star is nothing
    ("the -fox", []),
    ("-fox -中 -한 -データ -c -ü* -u* -party -and -version -tieng -tags -größe", ["empty"]),
    ('-"lazy dog" the', []),
    ('-"dog lazy" the', ["english"]),
    ("größe", ["german"]),
    ("grosse", ["german"]),
    ("strasse koln schon", ["german"]),
    ("STRAẞE", ["german"]),
    ("apfel", ["german"]),
    ("a\u0308pfel", ["german"]),  # in two pieces
    ("搜索", ["chinese"]),
    ("全文", ["chinese"]),
    ("文全", ["chinese"]),
    ("索全", []),
    ("中文", ["mixed", "chinese"]),
    ("中文 -python3", ["chinese"]),
    ("数据库 功能", ["chinese"]),
    ("データ", ["japanese"]),
    ("がっこう", ["japanese"]),
    ("かっこう", []),
    ("ﾃﾞｰﾀ", ["japanese"]),
    ("검색", ["korean"]),
    ("데이터베이스", ["korean"]),
    ("python3", ["mixed"]),
    ("c++", ["mixed"]),
    ("foo-bar", ["mixed"]),
    ("bar-foo", []),
    ("foo-b*", ["mixed"]),
    ("foo-a*", []),
    ("-foo-b* c++", []),
    ("example.com", ["mixed"]),
    ("https://example.com/path_x?a=1", ["mixed"]),
    ("🎉", ["emoji"]),
    ("👩‍💻", ["emoji"]),
    ("❤", ["emoji"]),
    ("💣", []),
    ("and or not near", ["operators"]),
    ("NOT", ["operators"]),
    ("NEAR(and or)", []),
    ("title:AND", []),
    ('"quote star"', ["operators"]),
    ("3.14", ["numbers"]),
    ("1,000", ["numbers"]),
    ("50%", ["numbers"]),
    ("%", []),
    ("_", []),
    ("tieng viet", ["vietnamese"]),
    ("ελλαδα", ["vietnamese"]),
    ("हिन्दी", ["vietnamese"]),
    ("ёлка", ["vietnamese"]),
    ("seen", ["hidden"]),
    ("invisible", []),
    ("unseen", []),
    ("amp", []),
    ("“lazy dog”", ["english"]),
    ('"lazy dog', ["english"]),  # nobody closes it
    ('"', []),
    ("-", []),
    ("*", []),
    ("'; drop table feed_search; --", []),
])  # fmt: skip
def test_what_a_search_finds(store: Store, search: str, names: list[str]) -> None:
    assert found(store, search) == names


def test_nothing_but_spaces_is_no_search(store: Store) -> None:
    assert len(found(store, " \u3000")) == len(ARTICLES)


PIECES = st.sampled_from(
    ["fox", "中", "é", '"', "*", "-", "'", ":", "&", "|", "!", "(", ")", "\\", "^", "%", "_", "<->",
     "NEAR", "AND", "{", "}", "+", ",", "\x00", "🎉", " ", "\n", "$1", "?", "\ufeff", "ß"]
)  # fmt: skip


@settings(max_examples=150)
@given(search=st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=20)))
def test_no_search_is_wrong(store: Store, search: str) -> None:
    found(store, search.encode("utf-8", "replace").decode())


def test_a_long_text_is_searched_up_to_its_limit(store: Store) -> None:
    """More words than PostgreSQL can count, some of them more often than it can remember."""
    words = ["the", "house", *("the filler" for _ in range(9_000)), "the", "end"]
    entries = [entry(900, title="Long", content=f"<p>{' '.join(words)}</p>"),
               entry(901, title="Longer", content="中" * MAX_TEXT + "end"),
               entry(902, title="x" * 5_000, content=string.ascii_letters * 20)]  # fmt: skip
    stored = keep(store, 2, entries, NOW)
    store.write([(ADD_ENTRY, [("cat", "f", each.article, NOW, NOW, 0, 0, NOW)
                              for each in stored.arrivals])])  # fmt: skip

    def finds(search: str) -> list[str | None]:
        rows = listed(store, "cat", Wanted(search=search), "oldest", size=10)
        return [each.link and each.link.rpartition("/")[2] for each in rows]

    assert finds('"the end"') == ["900"]
    assert finds('"the house the filler"') == ["900"]
    assert finds('"house end"') == []
    assert finds("longer 中中中") == ["901"]
    assert finds("longer end") == []
    assert finds("x" * 100) == ["902"]
    assert finds("x" * 300) == ["902"]


def test_a_changed_text_is_found_by_its_new_words_alone(store: Store) -> None:
    stored = keep(store, 3, [entry(1, title="Before", content="<p>old words</p>")], NOW)
    rows = [("dan", "f", each.article, NOW, NOW, 0, 0, NOW) for each in stored.arrivals]
    store.write([(ADD_ENTRY, rows)])
    keep(store, 3, [entry(1, title="After", content="<p>new words</p>")], NOW + 1)
    for search, count in {"before": 0, "old": 0, "after": 1, "new": 1, "words": 1}.items():
        assert counted(store, "dan", Wanted(search=search)) == count


def test_a_search_is_about_ones_own_articles(store: Store) -> None:
    assert counted(store, "bob", Wanted(search="fox")) == 1
    assert counted(store, "eve", Wanted(search="fox")) == 0
    assert counted(store, "bob", Wanted(feed="other", search="fox")) == 0


def test_a_search_costs_no_more_for_saying_the_same_again() -> None:
    """Looking for a beginning means to look for all words that begin so."""
    assert [each.words for each in terms_of("a* " * 30 + "b b -b")] == [("a",), ("b",), ("b",)]
    many = " ".join(f"{letter}*" for letter in string.ascii_lowercase)
    assert sum(each.begins for each in terms_of(many)) == MAX_BEGINNINGS
    assert len(terms_of(f"{many} " + " ".join(f"w{n}" for n in range(99)))) == MAX_TERMS


def test_words_are_plain_and_bounded() -> None:
    assert spaced("Müller's  e-mail,\x00中文🎉!") == "muller s e mail 中 文 🎉"
    assert spaced("soft\u00adhyphen \ufb01ne ½") == "softhyphen fine 1 2"
    assert len(spaced("y" * 10_000)) == MAX_WORD
    assert len(spaced("中" * 200_000)) <= MAX_TEXT
    assert [each.words for each in terms_of('a "b c" -d e*')] == [
        ("a",),
        ("b", "c"),
        ("d",),
        ("e",),
    ]
