"""What needs attention at the archive: accounts, failures, and the disk."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from headway.api.attention import Attention
from headway.apps.media import attention
from headway.apps.media.accounts.pool import Heard, Word, after
from headway.apps.media.attention import DiskWatch
from headway.apps.media.fetcher.protocol import FailureKind
from headway.apps.media.library.errors import LibraryFull, LibraryReadOnly
from headway.apps.media.shelf import Shelf
from tests.hands.kit import eventually
from tests.media.media_world import MediaWorld, failure


def said(world: MediaWorld, tenant: str | None = None) -> dict[str, Attention]:
    attentive = world.media.attentive
    attentive._tally._until = attentive._disk._until = 0.0
    attentive._numbers.clear()
    items = world.media.attention(tenant, world.now)
    return {f"{each.kind} {each.subject[1]}".strip(): each for each in items}


def test_downloads_that_failed_for_good_are_told_to_whom_they_belong() -> None:
    with MediaWorld() as world:
        site = world.site("x.example", lists={"/list": ["1", "2"]})
        site.broken["2"] = failure(FailureKind.GONE, 404)
        subscription = world.subscribe("https://x.example/list", tenant="ann")
        assert said(world) == {}
        world.download_now(subscription)
        world.run_for("1h")
        assert world.states()["failed"] == 1
        assert said(world)["archive_failed"].values == {"count": 1}
        assert set(said(world, "ann")) == {"archive_failed"}
        assert said(world, "bob") == {}
        shutil.rmtree(world.media.library.root)
        assert said(world)["library_gone"].level == "bad"
        assert "library_gone" not in said(world, "ann")


def test_accounts_that_are_away_and_sites_without_any() -> None:
    with MediaWorld() as world:
        ids = [world.account(name, "x.example", name * 8) for name in ("one", "two")]
        assert said(world) == {}
        accounts = world.media.accounts.accounts
        for place, id in enumerate(ids):
            accounts[id] = after(accounts[id], Heard(Word.INVALID), world.now)
            found = said(world)
            assert found["account_away one@x.example"].values["status"] == "expired"
            assert ("accounts_none x.example" in found) is (place == 1)
        assert said(world, "ann") == {}


class Shaky(Shelf):
    """A library whose disk does as the test says."""

    def __init__(self, error: Exception | None = None, free: int = 1_000) -> None:
        self.root = Path("somewhere")
        self.min_free_bytes = 100
        self.error = error
        self.free = free
        self.answers = threading.Event()
        self.answers.set()

    def was_used(self) -> bool:
        return True

    def check(self) -> None:
        self.answers.wait(20)
        if self.error is not None:
            raise self.error

    def free_bytes(self) -> int:
        return self.free


@pytest.mark.parametrize(("error", "free", "kind"), [
    (None, 1_000, None), (None, 150, "library_low"), (LibraryFull("x"), 1, "library_full"),
    (LibraryReadOnly("x"), 1_000, "library_readonly"),
])  # fmt: skip
def test_what_is_wrong_with_the_disk(error: Exception | None, free: int, kind: str | None) -> None:
    trouble = DiskWatch(Shaky(error, free)).trouble()
    assert (None if trouble is None else trouble[0]) == kind


def test_a_disk_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "WAIT_S", 0.01)
    library = Shaky()
    library.answers.clear()
    watch = DiskWatch(library)
    assert watch.trouble() is None, "not known yet"
    monkeypatch.setattr(attention, "SILENT_S", 0.0)
    assert (watch.trouble() or [""])[0] == "library_silent"
    library.answers.set()
    eventually(lambda: watch.trouble() is None)
