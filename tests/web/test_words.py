"""The words of the pages, read from their sources: each that is used is there in both languages,
and each that is there is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("headway.web")))
STRING = r'"(?:[^"\\\n]|\\.)*"'
ENTRY = re.compile(
    rf'(?:"([\w-]+(?:\.[\w-]+)+)"|^  (\w+)): \[\s*({STRING}),\s*({STRING}),?\s*\]', re.M
)
# `text("a.b")`, `text(odd ? "a.b" : "a.c")`, `word("a.b")`, `data-t="a.b"`
USED = re.compile(
    rf"\b(?:text|word)\((?:[^()\"`]*\? )?({STRING})(?: : ({STRING}))?|data-t[\w-]*=({STRING})"
)
MADE = re.compile(r"`([a-z][\w-]*(?:\.[\w-]+)*\.\$\{[^`]*)`")  # `a.b.${kind}`
HOLE = re.compile(r"(\$\{[^}]*(?:\}|$))")
PLACEHOLDER = re.compile(r"\{(\w+)\}")
CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
# Names, and what people type: they are the same in every language.
TERMS = {
    "archive.lib.ytdlp", "archive.lib.ffmpeg", "archive.acc.cookies", "channels.tokens",
    "requests.search.example",
}  # fmt: skip
COMMENT = re.compile(r"^\s*//.*$", re.M)
NO_WORD = re.compile(r"[\W\d_]*")


@cache
def sources() -> dict[str, str]:
    found = [each for kind in ("*.js", "*.html") for each in WEB.rglob(kind)]
    return {str(each.relative_to(WEB)): COMMENT.sub("", each.read_text("utf-8")) for each in found}


@cache
def words() -> dict[str, tuple[str, str]]:
    found = {}
    for name, text in sources().items():
        for quoted, plain, english, chinese in ENTRY.findall(text):
            if plain and not name.startswith("text"):
                continue
            key = quoted or plain
            assert key not in found, f"{key} stands in two tables"
            found[key] = (english[1:-1], chinese[1:-1])
    return found


def shape(template: str) -> re.Pattern[str]:
    """All keys that `upstreams.cell.${kind}` may become: one word for each hole, unless what is in
    the hole has words of its own.
    """
    pieces = HOLE.split(template)
    for at in range(1, len(pieces), 2):
        pieces[at] = ".*" if '"' in pieces[at] or pieces[at][-1] != "}" else "[^.]+"
    pieces[::2] = map(re.escape, pieces[::2])
    return re.compile("".join(pieces))


def used() -> Iterator[tuple[str, str]]:
    for name, text in sources().items():
        for found in USED.findall(text):
            yield from ((name, key[1:-1]) for key in found if key)


def test_the_tables_are_found() -> None:
    assert len(words()) > 500
    assert words()["nav.overview"] == ("Overview", "概览")
    assert ("page/main.js", "shell.palette") in set(used())


def test_what_is_used_is_there() -> None:
    missing = {f"{name}: {key}" for name, key in used() if key not in words()}
    for name, text in sources().items():
        for template in MADE.findall(text):
            fits = shape(template)
            if not any(fits.fullmatch(key) for key in words()):
                missing.add(f"{name}: {template}")
    assert not missing


def test_what_is_there_is_used() -> None:
    literals, begins = set[str](), set[str]()
    shapes: list[re.Pattern[str]] = []
    for text in sources().values():
        rest = ENTRY.sub("", text)
        literals |= {literal[1:-1] for literal in re.findall(STRING, rest)}
        shapes += map(shape, MADE.findall(rest))
        begins |= {made.partition("${")[0] for made in MADE.findall(rest)}

    def is_used(key: str) -> bool:
        whole = key in literals or any(each.fullmatch(key) for each in shapes)
        return whole or any(key.removeprefix(begin) in literals for begin in begins)

    assert [key for key in words() if not is_used(key)] == []


def test_both_languages_say_the_same() -> None:
    faults = []
    for key, (english, chinese) in words().items():
        if not english or not chinese:
            faults.append(f"{key}: one is empty")
        elif set(PLACEHOLDER.findall(english)) != set(PLACEHOLDER.findall(chinese)):
            faults.append(f"{key}: other values: {english!r}, {chinese!r}")
        elif english.count("|") > 1 or chinese.count("|") > english.count("|"):
            faults.append(f"{key}: other forms: {english!r}, {chinese!r}")
        elif key not in TERMS and not CHINESE.search(chinese):
            rest = PLACEHOLDER.sub("", chinese)
            if not NO_WORD.fullmatch(rest):
                faults.append(f"{key}: {chinese!r} is not Chinese")
        if CHINESE.search(english) and key != "palette.language":
            faults.append(f"{key}: {english!r} is not English")
    assert not faults
