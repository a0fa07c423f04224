"""A sealed secret opens for its own record with its own key, and nothing ever tells it."""

from __future__ import annotations

import base64
import os
import re
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import BadSettings, HeadwayError, SealedElsewhere
from headway.net import sealing
from headway.net.redaction import redact
from headway.net.sealing import FILE, VARIABLE, Vault, new_key

SECRET = "sk-Canary7f3kQz91"
ABOUT = "channel/main/api_key"
KEYS = [new_key() for _ in range(3)]
VAULT = Vault(KEYS[:1], "the test")


def with_keys(*keys: str) -> Vault:
    return Vault.at("nowhere", {VARIABLE: ",".join(keys)})


def told_by(error: BaseException) -> str:
    """All that a log or a debugger's report could show of it, its causes included."""
    shown = "".join(traceback.format_exception(error))
    seen: BaseException | None = error
    while seen is not None:
        shown += f"{seen!r} {seen.args!r} {vars(seen)!r}"
        seen = seen.__cause__ or seen.__context__
    return shown


# --- opening


@given(st.text(st.characters()), st.text(st.characters(), min_size=1))
def test_what_was_sealed_opens_for_the_same_record(text: str, about: str) -> None:
    sealed = VAULT.seal(text, about)
    assert re.fullmatch(r"hw1\.[0-9a-f]{12}\.[A-Za-z0-9_-]+", sealed)
    assert VAULT.unseal(sealed, about) == text


def test_half_a_character_comes_back_as_well() -> None:
    assert VAULT.unseal(VAULT.seal("\ud800x", ABOUT), ABOUT) == "\ud800x"


@given(st.text(min_size=1), st.text(min_size=1))
def test_it_does_not_open_for_another_record(about: str, other: str) -> None:
    if about == other:
        return
    sealed = VAULT.seal(SECRET, about)
    with pytest.raises(SealedElsewhere, match="another record"):
        VAULT.unseal(sealed, other)


def test_the_record_must_be_named() -> None:
    with pytest.raises(ValueError, match="record"):
        VAULT.seal(SECRET, "")
    with pytest.raises(ValueError, match="record"):
        VAULT.unseal(VAULT.seal(SECRET, ABOUT), "")


def test_the_same_secret_never_looks_the_same_twice() -> None:
    assert len({VAULT.seal(SECRET, ABOUT) for _ in range(100)}) == 100


def test_nothing_of_the_secret_is_in_what_is_stored() -> None:
    sealed = VAULT.seal(SECRET, ABOUT)
    content = base64.urlsafe_b64decode(sealed.rpartition(".")[2] + "==")
    assert SECRET not in sealed
    assert SECRET.encode() not in content
    assert ABOUT.encode() not in content


# --- what was changed


@given(st.data())
def test_one_changed_character_is_enough(data: st.DataObject) -> None:
    sealed = VAULT.seal(SECRET, ABOUT)
    at = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters().filter(lambda character: character != sealed[at]))
    with pytest.raises(SealedElsewhere):
        VAULT.unseal(sealed[:at] + other + sealed[at + 1 :], ABOUT)


def test_any_part_alone_is_not_enough() -> None:
    sealed = VAULT.seal(SECRET, ABOUT)
    for end in range(len(sealed)):
        with pytest.raises(SealedElsewhere):
            VAULT.unseal(sealed[:end], ABOUT)
    for more in ("\n", "=", ".", "A", " "):
        with pytest.raises(SealedElsewhere):
            VAULT.unseal(sealed + more, ABOUT)


@given(st.one_of(st.text(), st.text().map(lambda text: f"hw1.0123456789ab.{text}")))
def test_any_other_text_fails_cleanly(text: str) -> None:
    with pytest.raises(SealedElsewhere):
        VAULT.unseal(text, ABOUT)


# --- rotation


def test_a_key_is_rotated_without_a_moment_in_which_something_does_not_open() -> None:
    old, new = KEYS[:2]
    before = with_keys(old).seal(SECRET, ABOUT)

    both = with_keys(new, old)
    again = both.seal(both.unseal(before, ABOUT), ABOUT)

    after = with_keys(new)
    assert after.unseal(again, ABOUT) == SECRET
    with pytest.raises(SealedElsewhere, match=f"missing from {VARIABLE}"):
        after.unseal(before, ABOUT)


def test_a_missing_key_is_named_with_its_file(tmp_path: Path) -> None:
    sealed = with_keys(KEYS[0]).seal(SECRET, ABOUT)
    key_id = sealed.split(".")[1]
    with pytest.raises(SealedElsewhere) as lost:
        Vault.at(str(tmp_path), {}).unseal(sealed, ABOUT)
    assert key_id in str(lost.value)
    assert str(tmp_path / FILE) in str(lost.value)


def test_a_key_may_be_written_with_padding_or_twice() -> None:
    sealed = with_keys(KEYS[0]).seal(SECRET, ABOUT)
    assert with_keys(f" {KEYS[0]}= ", KEYS[0], "").unseal(sealed, ABOUT) == SECRET


# --- where keys come from


def test_the_file_is_made_once_for_us_alone(tmp_path: Path) -> None:
    sealed = Vault.at(str(tmp_path), {}).seal(SECRET, ABOUT)
    assert Vault.at(str(tmp_path), {}).unseal(sealed, ABOUT) == SECRET
    assert os.listdir(tmp_path) == [FILE]
    about = (tmp_path / FILE).stat()
    assert stat.S_IMODE(about.st_mode) == 0o600
    assert about.st_nlink == 1


def test_the_file_may_have_several_keys(tmp_path: Path) -> None:
    write(tmp_path, f"{KEYS[1]}\n\n  {KEYS[0]}\r\n")
    vault = Vault.at(str(tmp_path), {})
    old = with_keys(KEYS[0]).seal(SECRET, ABOUT)
    assert vault.unseal(old, ABOUT) == SECRET
    assert with_keys(KEYS[1]).unseal(vault.seal(SECRET, ABOUT), ABOUT) == SECRET


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    sealed = Vault.at(str(tmp_path), {VARIABLE: KEYS[0]}).seal(SECRET, ABOUT)
    assert os.listdir(tmp_path) == []
    assert with_keys(KEYS[0]).unseal(sealed, ABOUT) == SECRET


SEAL_AT_ONCE = """
import sys
from headway.net.sealing import Vault
print("ready", flush=True)
sys.stdin.readline()
print(Vault.at(sys.argv[1], {}).seal("x", "y"), flush=True)
"""


def test_processes_that_start_at_once_go_on_with_one_key(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SEAL_AT_ONCE, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    sealed = [process.communicate(timeout=60)[0].strip() for process in processes]
    vault = Vault.at(str(tmp_path), {})
    assert [vault.unseal(each, "y") for each in sealed] == ["x"] * 4
    assert os.listdir(tmp_path) == [FILE]


def test_the_file_never_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same race, at its worst moment: another process is first by a hair."""
    link = os.link

    def too_late(draft: str, path: str) -> None:
        write(tmp_path, KEYS[0])
        link(draft, path)

    monkeypatch.setattr(os, "link", too_late)
    sealed = Vault.at(str(tmp_path), {}).seal(SECRET, ABOUT)
    assert with_keys(KEYS[0]).unseal(sealed, ABOUT) == SECRET
    assert os.listdir(tmp_path) == [FILE]


# --- what is refused


def write(directory: Path, text: str | bytes, mode: int = 0o600) -> Path:
    file = directory / FILE
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o777])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    file = write(tmp_path, KEYS[0], mode)
    with pytest.raises(BadSettings, match="chmod 600") as refused:
        Vault.at(str(tmp_path), {})
    assert str(file) in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(BadSettings, match="cannot be read"):
        Vault.at(str(tmp_path), {})
    (tmp_path / FILE).rmdir()
    os.mkfifo(tmp_path / FILE, 0o600)
    with pytest.raises(BadSettings, match="not a file"):
        Vault.at(str(tmp_path), {})


def test_where_no_file_can_be_made_the_variable_is_recommended(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=VARIABLE):
        Vault.at(str(tmp_path / "missing"), {})


NOT_KEYS = {
    "too short": new_key()[:-1],
    "too long": new_key() + "AA",
    "not base64": "!" + new_key()[1:],
    "not our base64": "+" + new_key()[1:],
    "not ASCII": "ä" + new_key()[1:],
    "a password": SECRET,
    "two in one": f"{new_key()} {new_key()}",
    "bits over": new_key()[:-1] + "B",
}


@pytest.mark.parametrize("why", NOT_KEYS)
def test_what_is_no_key_is_refused_and_not_repeated(tmp_path: Path, why: str) -> None:
    write(tmp_path, f"{KEYS[0]}\n{NOT_KEYS[why]}\n")
    places: list[Callable[[], Vault]] = [
        lambda: with_keys(KEYS[0], NOT_KEYS[why]),
        lambda: Vault.at(str(tmp_path), {}),
    ]
    for place in places:
        with pytest.raises(BadSettings, match="key 2 is not 32 bytes in base64url") as refused:
            place()
        shown = told_by(refused.value)
        assert NOT_KEYS[why] not in shown
        assert NOT_KEYS[why][5:20] not in shown
        assert KEYS[0] not in shown


@pytest.mark.parametrize("nothing", ["", " ", ",", "\n"])
def test_no_key_at_all_is_refused(tmp_path: Path, nothing: str) -> None:
    with pytest.raises(BadSettings, match=f"{VARIABLE}: there is no key in it"):
        Vault.at(str(tmp_path), {VARIABLE: nothing})
    write(tmp_path, nothing.replace(",", ""))
    with pytest.raises(BadSettings, match="there is no key in it"):
        Vault.at(str(tmp_path), {})


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    write(tmp_path, b"A" * 100_000)
    with pytest.raises(BadSettings, match="too long"):
        Vault.at(str(tmp_path), {})


# --- nothing tells


def test_no_error_tells_a_secret_or_a_key() -> None:
    vault = with_keys(*KEYS[:2])
    sealed = vault.seal(SECRET, ABOUT)
    attempts: list[Callable[[], object]] = [
        lambda: vault.unseal(sealed, "other"),
        lambda: vault.unseal(sealed[:-3], ABOUT),
        lambda: vault.unseal(SECRET, ABOUT),  # stored before anything was sealed
        lambda: with_keys(KEYS[2]).unseal(sealed, ABOUT),
    ]
    for attempt in attempts:
        with pytest.raises(HeadwayError) as failed:
            attempt()
        shown = told_by(failed.value)
        for secret in (SECRET, sealed.rpartition(".")[2], *KEYS):
            assert secret not in shown.replace("lambda: vault.unseal(SECRET", "")


def test_a_vault_shows_how_many_keys_it_has_and_not_which() -> None:
    vault = with_keys(*KEYS[:2])
    assert repr(vault) == f"<Vault with 2 keys of {VARIABLE}>"
    shown = repr(vars(vault))
    for key in KEYS[:2]:
        assert key not in shown
        assert repr(base64.urlsafe_b64decode(key + "=")) not in shown


def test_a_key_on_its_way_into_a_log_is_hidden() -> None:
    with_keys(KEYS[0])
    assert KEYS[0] not in redact(f"the environment was {{'X': '{KEYS[0]}'}}")


def test_a_vault_hears_of_keys_that_others_put_into_its_file(tmp_path: Path) -> None:
    """Another process rotates and prunes, and this one goes on."""
    vault, other = Vault.at(str(tmp_path), {}), Vault.at(str(tmp_path), {})
    first = vault.seal("s", "x")
    _, keys = sealing.keys_at(str(tmp_path), {})
    new = sealing.new_key()
    sealing.write_key_file(str(tmp_path), [new, *keys])

    assert other.ids == [sealing.id_of(new), sealing.id_of(keys[0])]
    assert vault.unseal(other.seal("t", "x"), "x") == "t"
    assert vault.unseal(first, "x") == "s"
    assert (tmp_path / sealing.FILE).stat().st_mode & 0o777 == 0o600
    sealing.write_key_file(str(tmp_path), [new])
    assert vault.seal("u", "x").split(".")[1] == sealing.id_of(new)
    with pytest.raises(SealedElsewhere):
        vault.unseal(first, "x")


def test_a_file_that_is_broken_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    vault = Vault.at(str(tmp_path), {})
    (tmp_path / sealing.FILE).write_text("no key\n")
    assert vault.unseal(vault.seal("s", "x"), "x") == "s"
