"""Finding articles by their words.

What a word is, is decided here and for both stores: small letters, without accents, and nothing
but letters and digits. Chinese, Japanese and Korean have no spaces between words, so each of their
characters is a word of its own; so is each emoji. The stores only compare. A search has words that
must all be there, "phrases", beginnings* and -what must not be there; anything else that somebody
writes is plain text, so no search is ever wrong.

SQLite knows where words stand. PostgreSQL forgets that for long texts, so there the words beside
each other are looked for in the text of those articles that have them all.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category, is_normalized, normalize

MAX_TEXT = 100_000  # characters of one article that are searched
MAX_WORD = 100  # characters; a longer one is cut, since PostgreSQL cannot index it
MAX_TERMS = 30  # of a search; the rest is left out
MAX_BEGINNINGS = 5  # of them: each may be that of very many words

# Ideographs with their extensions, kana, hangul, and their compatibility forms.
_LETTER = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001f200-\U0001f2ff\U00020000-\U0003ffff]"
)
_ACCENTED = "\u0400"  # below it: Latin and Greek, where letters with accents count as those without
_DROPPED = {"\u00ad", *map(chr, range(0x0300, 0x0370)), *map(chr, range(0xFE00, 0xFE10))}

_TERM = re.compile(r'(-?)"([^"]*)(?:"|$)|(\S+)')
_QUOTES = str.maketrans("“”„«»", '"""""')


def spaced(text: str) -> str:
    """The words of a text, with a space between."""
    text = text[:MAX_TEXT]
    if not is_normalized("NFKC", text):
        text = normalize("NFKC", text)
    words = text.translate(_FOLDED)[:MAX_TEXT].split()
    return " ".join([word if len(word) <= MAX_WORD else word[:MAX_WORD] for word in words])


class _Folded(dict[int, str]):
    """What becomes of each character, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _folded(chr(code))
        return found


def _folded(character: str) -> str:
    small = character.casefold()
    parts = normalize("NFKD", small)
    return "".join(map(_part, parts if parts[:1] < _ACCENTED else small))


def _part(character: str) -> str:
    if character in _DROPPED:
        return ""
    if _LETTER.match(character):
        return f" {character} "
    kind = category(character)
    if kind[0] in "LNM":
        return character
    if kind == "So" and not character.isascii():
        return f" {character} "
    return "" if kind == "Cf" else " "


_FOLDED = _Folded()


# ---------------------------------------------------------------------- what is looked for


class Term(NamedTuple):
    """Words that stand beside each other."""

    words: tuple[str, ...]
    begins: bool = False  # the last of them may go on
    without: bool = False  # it must not be there


class Condition(NamedTuple):
    """For a query about `e`, which are entries."""

    text: str
    values: tuple[str, ...] = ()


NOTHING = Condition("1 = 0")


def terms_of(search: str) -> list[Term]:
    """Each once."""
    found: dict[Term, None] = {}
    beginnings = 0
    for minus, phrase, plain in _TERM.findall(search.translate(_QUOTES)):
        text = plain or phrase
        without = bool(minus) or (len(plain) > 1 and plain.startswith("-"))
        words = tuple(spaced(text).split())
        term = Term(words, plain.endswith("*"), without)
        if words and term not in found:
            beginnings += term.begins
            if not term.begins or beginnings <= MAX_BEGINNINGS:
                found[term] = None
    return list(found)[:MAX_TERMS]


def condition_of(search: str, dialect: str) -> Condition:
    """Which entries a search finds, in the words of a store."""
    terms = terms_of(search)
    if not terms:
        return NOTHING  # there are no words in it
    say = _for_sqlite if dialect == "sqlite" else _for_postgres
    wanted = [each for each in terms if not each.without]
    parts = [say("", wanted)] if wanted else []
    parts += [say("not ", [each]) for each in terms if each.without]
    return Condition(
        " and ".join(each.text for each in parts),
        tuple(value for each in parts for value in each.values),
    )


def _for_sqlite(no: str, terms: list[Term]) -> Condition:
    """Words have no quotes in them, so nothing of them is taken for more than a word."""
    said = [f'"{" ".join(each.words)}"{" *" if each.begins else ""}' for each in terms]
    text = f"e.article {no}in (select rowid from feed_search where feed_search match ?)"
    return Condition(text, (" AND ".join(said),))


def _for_postgres(no: str, terms: list[Term]) -> Condition:
    """In these words it is a join; one of `not in` is slow when there are very many. So is `like`,
    which is why words beside each other are looked for in another way.
    """
    said = [
        f"'{word}'{':*' if each.begins and place == len(each.words) else ''}"
        for each in terms
        for place, word in enumerate(each.words, start=1)
    ]
    beside = [
        f" {' '.join(each.words)}{'' if each.begins else ' '}"
        for each in terms
        if len(each.words) > 1
    ]
    text = (
        f"{no}exists (select 1 from feed_search as its where its.article = e.article "
        f"and its.words @@ cast(? as tsquery){' and strpos(its.text, ?) > 0' * len(beside)})"
    )
    return Condition(text, (" & ".join(said), *beside))
