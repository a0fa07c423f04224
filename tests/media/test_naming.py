"""Names of files: templates that say what is wrong with them, and names that stay where they are
put, whatever a site calls its videos.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.apps.media.library.legal_names import MAX_NAME_BYTES, cut, folded, legal_name
from headway.apps.media.library.naming import (
    DEFAULT,
    MAX_TEMPLATE,
    NUMBERS,
    TEXTS,
    Facts,
    Template,
)

FACTS = Facts(
    title="A walk",
    id="BV1x",
    extractor="BiliBili",
    uploader="Somebody",
    subscription="Walks",
    site="bilibili",
    published_at=1_794_787_200,  # 16 November 2026
    index=7,
    height=1080,
)
FORBIDDEN = set('<>:"/\\|?*')
SLASH = "\uff0f"  # the wide one, which parts no directories
DEVICES = {"con", "prn", "aux", "nul", "com1", "lpt9", "com²", "conin$"}

nasty = st.sampled_from(
    ["", ".", "..", "../../etc/passwd", "/etc/passwd", "con", "NUL.txt", "com1 .x", "a/b\\c", "~",
     "\0", "x\ny", ".hidden", "trailing. . ", "\u202egpj.exe", "e\u0301" * 300, "好" * 300,
     "👩\u200d👩\u200d👧" * 40, "\ud800", "{id}", "%(title)s", "C:\\x", "tenants", "TENANTS"]
)  # fmt: skip
texts = st.text(max_size=300) | nasty | st.text(st.characters(max_codepoint=0x7F), max_size=40)
facts = st.builds(
    Facts,
    title=texts,
    id=texts,
    uploader=texts,
    subscription=texts,
    site=texts,
    published_at=st.none() | st.floats() | st.integers(),
    index=st.none() | st.integers(),
    height=st.none() | st.integers(0, 10**5),
)
literals = st.text(st.sampled_from(" .-_[]()äé好a0"), max_size=6)
fields = st.sampled_from([f"{{{name}}}" for name in TEXTS + NUMBERS] + ["{index:04}", "{{", "}}"])
parts = st.lists(fields | literals, min_size=1, max_size=4).map("".join)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    text = "/".join(draw(st.lists(parts, min_size=1, max_size=4)))
    try:
        return Template.parse(text)
    except ValueError:
        ends = st.sampled_from(["{title}", "x {id}", "{id}.{title}"])
        return Template.parse("{subscription}/" + draw(ends))


def rendered(text: str, **changes: Any) -> str:
    return str(Template.parse(text).render(replace(FACTS, **changes)))


def is_legal(name: str) -> bool:
    return (
        0 < len(name.encode()) <= MAX_NAME_BYTES
        and not FORBIDDEN & set(name)
        and not any(unicodedata.category(sign) in ("Cc", "Cs", "Cn") for sign in name)
        and not name.startswith((".", " "))
        and not name.endswith((".", " "))
        and name.partition(".")[0].strip().casefold() not in DEVICES
        and unicodedata.is_normalized("NFC", name)
    )


# ---------------------------------------------------------------------- what names look like


def test_the_default_sorts_by_date_and_keeps_the_id() -> None:
    assert rendered(DEFAULT) == "Walks/2026-11-16 A walk [BV1x]"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{title}", "A walk"),
        ("{site}/{uploader}/{id}", "bilibili/Somebody/BV1x"),
        ("{year}/{month}/{day} {title}", "2026/11/16 A walk"),
        ("{index:04} {title}", "0007 A walk"),
        ("{index} {title} {height}p", "7 A walk 1080p"),
        ("{{{id}}}", "{BV1x}"),
        ("a/b/{id}", "a/b/BV1x"),
    ],
)
def test_fields_are_filled_in(text: str, name: str) -> None:
    assert rendered(text) == name


def test_what_is_not_known_is_called_so() -> None:
    name = Template.parse("{uploader}/{date} {index:03} {title}").render(Facts())
    assert str(name) == "unknown/unknown unknown unknown"


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), 1e30, -1e30, 10**400])
def test_a_moment_that_no_calendar_has_is_unknown(moment: float) -> None:
    assert rendered("{date} {id}", published_at=moment) == "unknown BV1x"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", f"{SLASH}..{SLASH}etc{SLASH}passwd"),
        ("a/b", f"a{SLASH}b"),
        ('Who? What: "that"', "Who\uff1f What\uff1a \uff02that\uff02"),
        ("two\nlines\tand  spaces", "two lines and spaces"),
        ("...hidden", "hidden"),
        ("ends with dots...", "ends with dots"),
        ("con", "_con"),
        ("Nul.the movie", "_Nul.the movie"),
        ("cafe\u0301", "café"),
        ("abc\u202etxt.exe", "abctxt.exe"),
        ("\0\x1b[31m", "[31m"),
        ("half \ud83d character", "half character"),
        ("..", "unknown"),
        ("{id} is no field here", "{id} is no field here"),
    ],
)
def test_strange_titles_become_names_that_every_system_takes(title: str, name: str) -> None:
    assert rendered("{title}", title=title) == name


def test_a_long_title_gives_way_to_the_id() -> None:
    name = rendered("{date} {title} [{id}]", title="好" * 500)

    assert name.startswith("2026-11-16 好好")
    assert name.endswith("好 [BV1x]")
    assert MAX_NAME_BYTES - 3 < len(name.encode()) <= MAX_NAME_BYTES


def test_an_id_is_not_shortened_while_something_else_can_be() -> None:
    name = rendered("{title} [{id}]", title="t" * 100, id="i" * 120)
    assert name == f"{'t' * 77} [{'i' * 120}]"


def test_of_two_long_fields_both_stay_readable() -> None:
    name = rendered("{uploader} - {title} [{id}]", title="t" * 500, uploader="u" * 500, id="i" * 11)
    assert "uuuuuuuuuuuuuuuuuuuuuuuu - t" in name
    assert name.endswith(f"t [{'i' * 11}]")


def test_a_name_that_is_cut_ends_like_any_other() -> None:
    assert legal_name("a" * 199 + ". b") == "a" * 199
    assert legal_name("a" * 199 + " b") == "a" * 199


def test_a_character_is_not_torn_from_its_marks() -> None:
    assert cut("ab" + "e\u0301", 3) == "ab"
    assert cut("x👩\u200d👧", 8) == "x"
    assert cut("x👍🏽", 5) == "x"
    assert cut("e" + "\u0301" * 50, 9) == "e" + "\u0301" * 4  # nothing else would be left


def test_nobody_gets_into_the_directory_of_the_tenants() -> None:
    assert rendered("{subscription}/{id}", subscription="Tenants") == "_Tenants/BV1x"
    assert rendered("tenants/{id}") == "_tenants/BV1x"
    assert rendered("a/tenants/{id}") == "a/tenants/BV1x"


# ---------------------------------------------------------------------- templates that are wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs {title} or {id}|is empty"),
        ("{uploader}", "needs {title} or {id}"),
        ("{titel}", r"no field {titel}; known are {title} {id} {uploader}"),
        ("{title.__class__}", "no field"),
        ("{title!r}", "no field"),
        ("{0}", "no field"),
        ("{}", "no field"),
        ("{title[0]}", "no field"),
        ("{title:>100000000}", "only numbers can be padded"),
        ("{index:{height}} {title}", "padded as in {index:04}|closes nothing"),
        ("{index:010} {id}", "padded as in {index:04}"),
        ("{index:x} {id}", "padded as in {index:04}"),
        ("{index:4} {id}", "padded as in {index:04}"),
        ("{title", "never closed"),
        ("{title}}", "closes nothing"),
        ("/{title}", "empty"),
        ("{title}/", "empty"),
        ("a//{title}", "empty"),
        ("a/ /{title}", "empty"),
        ("../{title}", "no name for a directory"),
        ("./{title}", "no name for a directory"),
        ("con/{title}", "no name for a directory"),
        ("a./{title}", "no name for a directory"),
        (".{title}", "hidden"),
        ("a:{title}", "cannot be part"),
        ("a\\{title}", "cannot be part"),
        ("a\0{title}", "cannot be part"),
        ("a/b/c/d/e/f/g/h/{title}", "at most 8"),
        ("{title}" + "x" * MAX_TEMPLATE, "at most 500"),
    ],
)  # fmt: skip
def test_a_template_says_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("{", r"\{").replace("}", r"\}")):
        Template.parse(text)


@given(st.text(st.sampled_from("{}:0/.title index4[]!%() "), max_size=30))
def test_any_text_is_a_template_or_a_value_error(text: str) -> None:
    try:
        template = Template.parse(text)
    except ValueError:
        return
    assert all(is_legal(name) for name in template.render(FACTS).parts)


# ---------------------------------------------------------------------- what always holds


@given(templates(), facts)
@example(Template.parse("{title}"), Facts(title="../../.."))
def test_every_name_is_legal_and_stays_below_its_root(template: Template, about: Facts) -> None:
    path = template.render(about)

    assert not path.is_absolute()
    assert len(path.parts) == len(template.components)
    assert all(is_legal(name) for name in path.parts)
    root = Path("some/root").resolve()
    assert (root / path).resolve().is_relative_to(root)
    assert (root / path).resolve() != root
    assert path.parts[0].casefold() != "tenants"
    assert PurePosixPath(str(path)) == path
    assert template.render(about) == path


@given(texts)
def test_a_legal_name_stays_as_it_is(text: str) -> None:
    name = legal_name(text)
    assert is_legal(name)
    assert legal_name(name) == name


@given(texts)
def test_names_are_the_same_in_every_form_and_case(text: str) -> None:
    name = legal_name(text)
    assert folded(unicodedata.normalize("NFD", name)) == folded(name)
    assert folded(folded(name)) == folded(name)
