"""What one server passes on to another is believed, and nobody else can say it."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from headway.api.auth import EVERYTHING, Principal
from headway.api.problems import Problem
from headway.api.together import peers as peering
from headway.api.together.peers import Passed, Peers, target_of
from headway.store import Store, open_store
from tests.together.conftest import NewGroup, new_group
from tests.together.group import Group

__all__ = ["new_group"]

SOMEBODY = Principal("token:t", frozenset({"read"}), "acme", "198.51.100.7", False, "id", 5.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield store
    store.close()


@pytest.fixture
def peers(store: Store) -> Peers:
    return Peers(store)


def scope(method: str = "GET", path: str = "/api/jobs", query: bytes = b"") -> dict[str, Any]:
    return {"method": method, "path": path, "query_string": query, "client": ("10.0.0.9", 1)}


def test_who_asks_is_the_same_on_the_other_side(store: Store, peers: Peers) -> None:
    asked = scope(query=b"status=queued")
    seal = peers.seal(SOMEBODY, "198.51.100.7", "GET", target_of(asked))
    assert Peers(store).let_in(asked, seal) == SOMEBODY
    assert asked["client"] == ("198.51.100.7", 0), "and the trail says from where"


def test_nobody_is_nobody_on_the_other_side(peers: Peers) -> None:
    seal = peers.seal(None, "198.51.100.7", "GET", "/api/jobs")
    assert peers.let_in(scope(), seal) is None


@pytest.mark.parametrize("asked", [
    scope("POST"), scope(path="/api/tokens"), scope(query=b"page=2"),
])  # fmt: skip
def test_a_word_for_one_request_lets_no_other_in(peers: Peers, asked: dict[str, Any]) -> None:
    seal = peers.seal(SOMEBODY, "", "GET", "/api/jobs")
    with pytest.raises(Problem, match="servers that share a store"):
        peers.let_in(asked, seal)


def test_a_word_is_old_after_a_minute(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    seal = peers.seal(SOMEBODY, "", "GET", "/api/jobs")
    now = peering.time.time()
    monkeypatch.setattr(peering.time, "time", lambda: now + 61.0)
    with pytest.raises(Problem, match="clocks"):
        peers.let_in(scope(), seal)


def forged() -> bytes:
    admin = {"name": "token:admin", "scopes": sorted(EVERYTHING), "tenant": None, "client": "",
             "by_cookie": False, "token": None, "ends_at": None}  # fmt: skip
    said = Passed(peering.time.time(), "127.0.0.1", admin)
    return urlsafe_b64encode(msgspec.json.encode(said))


@pytest.mark.parametrize("header", [
    b"", b".", b"x.y", forged(), forged() + b".", forged() + b"." + b"0" * 64, b"\xff.\xff",
])  # fmt: skip
def test_a_word_without_the_key_lets_nobody_in(peers: Peers, header: bytes) -> None:
    with pytest.raises(Problem, match="servers that share a store"):
        peers.let_in(scope(), header)


@pytest.fixture
def group(new_group: NewGroup) -> Group:
    return new_group(2)


def test_no_server_believes_a_client_that_says_it_is_one(group: Group) -> None:
    for url in group.urls:
        for header in (forged(), forged() + b"." + b"0" * 64):
            answer = httpx2.get(f"{url}/api/jobs", headers={b"X-Headway-Peer": header})
            assert answer.status_code == 403, "though it would be let in without that word"
            assert answer.json()["type"] == "peer"


def test_a_page_of_another_site_gets_no_further_through_a_server_that_follows(
    group: Group,
) -> None:
    for url in group.urls:
        rebound = httpx2.get(f"{url}/api/upstreams", headers={"Host": "evil.example"})
        assert rebound.status_code == 421
        across = httpx2.post(
            f"{url}/api/queue/pause?scope=all", headers={"Origin": "https://evil.example"}
        )
        assert across.status_code == 403
    assert httpx2.get(f"{group.urls[0]}/api/queue/stats").json()["paused"]["all"] is False


def test_what_is_done_through_another_server_is_in_the_trail_with_who_and_from_where(
    group: Group,
) -> None:
    follower = group.urls[1]
    assert httpx2.post(f"{follower}/api/queue/pause?scope=all").status_code == 200
    [entry] = httpx2.get(f"{follower}/api/audit").json()["items"]
    assert entry["who"] == "loopback from 127.0.0.1"


def test_answers_are_as_guarded_through_a_server_that_follows(group: Group) -> None:
    direct, through = (httpx2.get(f"{url}/api/upstreams") for url in group.urls)
    kept = {"content-type", "cache-control", "content-security-policy", "referrer-policy",
            "x-content-type-options", "x-frame-options"}  # fmt: skip
    for name in kept:
        assert through.headers.get_list(name) == direct.headers.get_list(name)
    assert "x-headway-peer" not in through.headers
