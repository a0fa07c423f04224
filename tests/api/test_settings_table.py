"""Each table of the settings file is read alike, and what does not fit is named."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headway.api import config
from headway.apps.alerts.settings import alert_settings
from headway.apps.channels.declared import declared_channels
from headway.apps.feeds.settings import feed_settings
from headway.apps.media.settings import media_settings
from headway.errors import BadSettings

Reader = Callable[[str | None, Mapping[str, str]], Any]

READERS: dict[str, tuple[Reader, str, str]] = {  # how it is read, a number in it, a text in it
    "server": (config.read, "max_body", "host"),
    "feeds": (feed_settings, "parsers", "home"),
    "alerts": (alert_settings, "per_minute", "min_level"),
    "media": (media_settings, "at_once", "library"),
}

every_table = pytest.mark.parametrize("table", READERS)


def refusal(reader: Reader, said: str | bytes, tmp_path: Path) -> str:
    file = tmp_path / "headway.toml"
    file.write_bytes(said if isinstance(said, bytes) else said.encode())
    with pytest.raises(BadSettings) as refused:
        reader(str(file), {})
    return str(refused.value)


@every_table
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("inf", "inf"),
        ("nan", "nan"),
        ('"many"', "'many'"),
        ("[1]", "a list"),
        ("{ a = 1 }", "a dict"),
        ("2026-11-16", "a date"),
        ("0x" + "f" * 6_000, "one so large"),
        (str(2**63), "one so large"),
    ],
)
def test_what_is_no_number_is_refused(table: str, said: str, shown: str, tmp_path: Path) -> None:
    reader, name, _ = READERS[table]
    why = refusal(reader, f"[{table}]\n{name} = {said}\n", tmp_path)
    assert why == f"{name} of [{table}] is a number, not {shown}"


@every_table
def test_what_is_no_text_is_refused_and_not_shown(table: str, tmp_path: Path) -> None:
    reader, _, name = READERS[table]
    why = refusal(reader, f"[{table}]\n{name} = 4711\n", tmp_path)
    assert why == f"{name} of [{table}] is text; put it in quotes"


@every_table
def test_a_setting_that_there_is_not_is_refused_with_those_that_there_are(
    table: str, tmp_path: Path
) -> None:
    reader, known, _ = READERS[table]
    why = refusal(reader, f"[{table}]\nvolume = 11\n", tmp_path)
    assert "has no volume; known are" in why
    assert known in why


@pytest.mark.parametrize("reader", [declared_channels, *(each for each, *_ in READERS.values())])
@pytest.mark.parametrize(
    "said", [b"\xff", b"[server", b"x = " + b"[" * 5_000, b"x = " + b"9" * 5_000]
)
def test_a_file_that_is_no_toml_is_refused(reader: Reader, said: bytes, tmp_path: Path) -> None:
    assert "headway.toml is not a TOML file" in refusal(reader, said, tmp_path)


@every_table
def test_a_table_that_is_none_is_refused(table: str, tmp_path: Path) -> None:
    reader, *_ = READERS[table]
    assert f"is a table of settings: [{table}]" in refusal(reader, f"{table} = 1\n", tmp_path)


@every_table
def test_a_file_that_is_not_there_is_named(table: str, tmp_path: Path) -> None:
    reader, *_ = READERS[table]
    with pytest.raises(BadSettings, match=r"none\.toml cannot be read: No such file"):
        reader(str(tmp_path / "none.toml"), {})


@every_table
def test_a_variable_goes_before_the_file_and_is_named_if_it_is_wrong(
    table: str, tmp_path: Path
) -> None:
    reader, name, _ = READERS[table]
    file = tmp_path / "headway.toml"
    file.write_text(f"[{table}]\n{name} = 2\n")
    variable = ("HEADWAY_" if table == "server" else f"HEADWAY_{table.upper()}_") + name.upper()
    assert getattr(reader(str(file), {}), name) == 2
    assert getattr(reader(str(file), {variable: "3"}), name) == 3
    with pytest.raises(BadSettings, match=f"^{variable} is a number, not 'inf'$"):
        reader(str(file), {variable: "inf"})


@pytest.mark.parametrize(("reader", "said"), [
    (config.read, "[server]\nallowed_hosts = 1"),
    (config.read, "[server]\nallowed_hosts = [1]"),
    (alert_settings, '[alerts]\nkinds = [["a"]]'),
])  # fmt: skip
def test_a_list_is_one_of_texts(reader: Reader, said: str, tmp_path: Path) -> None:
    assert "is text, or a list of it" in refusal(reader, said, tmp_path)


@pytest.mark.parametrize(
    ("said", "read"),
    [("true", "yes"), ("1", "yes"), ('"false"', "no"), ("0", "no"), ('"auto"', "auto")],
)
def test_the_archive_is_switched_on_in_the_words_of_others_too(
    said: str, read: str, tmp_path: Path
) -> None:
    file = tmp_path / "headway.toml"
    file.write_text(f"[media]\non = {said}\n")
    assert media_settings(str(file), {}).on == read


def test_the_command_line_goes_before_everything(tmp_path: Path) -> None:
    file = tmp_path / "headway.toml"
    file.write_text("[server]\nport = 1\n")
    assert config.read(str(file), {"HEADWAY_PORT": "2"}, port=3, host=None).port == 3
