"""The keys of stored secrets, over HTTP: what each has sealed, and how another takes over while the
server goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from headway.api.config import Config
from headway.api.site import Site
from headway.apps.keys.ring import Ring
from headway.net import sealing
from headway.net.sealing import Vault
from headway.store import open_store
from headway.store.tables import Table
from tests.contract.kit import Api, new_name
from tests.servers import NewServer, Server

CANARY = "sk-canary-reseal"
COOKIES = "# Netscape HTTP Cookie File\n.videos.example\tTRUE\t/\tFALSE\t0\tsession\tcanary\n"


@contextmanager
def with_secrets(new_server: NewServer, **told: object) -> Iterator[tuple[Server, Api]]:
    """A server with a channel's key, a secret of callbacks, and a cookie."""
    server = new_server(media_on="yes", **told)
    with Api(server.url) as api:
        body = {"code": new_name(), "model": "m", "base_url": "http://127.0.0.1:1/v1"}
        api.post("/api/channels", {**body, "api_key": CANARY}, 201)
        api.get("/api/channels/callback-secret", tenant="acme")
        account = {"name": "a", "site": "videos.example", "cookies": COOKIES}
        api.post("/api/archive/accounts", account, 201)
        yield server, api


def sealed_by(api: Api) -> dict[str, tuple[str, int]]:
    return {each["id"]: (each["role"], each["secrets"]) for each in api.get("/api/keys")["items"]}


def stored(server: Server) -> list[str]:
    """All that is sealed in the store."""
    store = open_store(server.dsn or f"sqlite:///{server.data / 'headway.db'}")
    try:
        return [
            row[0]
            for query in (
                "select sealed_key from llm_channels",
                "select sealed from llm_callback_secrets",
                "select sealed from media_accounts",
            )
            for row in store.rows(query)
        ]
    finally:
        store.close()


def test_a_new_key_takes_over_while_the_server_runs(new_server: NewServer) -> None:
    with with_secrets(new_server) as (server, api):
        [(old, seen)] = sealed_by(api).items()
        assert seen == ("seals", 3)
        secret = api.get("/api/channels/callback-secret", tenant="acme")

        new = api.post("/api/keys/rotate")
        assert new["left"] == 3
        assert sealed_by(api) == {new["id"]: ("seals", 0), old: ("opens", 3)}
        half = api.post("/api/keys/reseal", limit=2)
        assert (half["resealed"], half["unreadable"], half["left"]) == (2, 0, 1)
        assert api.post("/api/keys/prune") == {"removed": []}  # one still needs it
        assert api.post("/api/keys/reseal")["left"] == 0
        assert api.post("/api/keys/prune") == {"removed": [old]}
        assert sealed_by(api) == {new["id"]: ("seals", 3)}

        # What the server remembers, and writes again, is sealed with the new one too.
        channel = api.get("/api/channels")["items"][0]["code"]
        api.ok("PATCH", f"/api/channels/{channel}", json={"rpm": 7})
        account = api.get("/api/archive/accounts")["items"][0]["id"]
        api.ok("PATCH", f"/api/archive/accounts/{account}", json={"enabled": False})
        assert {each[4:16] for each in stored(server)} == {new["id"]}
        assert api.get("/api/channels/callback-secret", tenant="acme") == secret
        server.restart()
        with Api(server.url) as again:
            assert again.get("/api/channels")["items"][0]["has_key"]
            assert again.get("/api/channels/callback-secret", tenant="acme") == secret
            what = {each["event"] for each in again.get("/api/audit")["items"]}
            assert {"key_added", "secrets_resealed", "keys_removed"} <= what


def test_a_rotation_that_was_broken_off_is_gone_on_with(new_server: NewServer) -> None:
    with with_secrets(new_server) as (server, api):
        api.post("/api/keys/rotate")
        api.post("/api/keys/reseal", limit=1)
        server.kill()
        server.start()
        with Api(server.url) as again:
            assert again.post("/api/keys/reseal")["resealed"] == 2
            assert again.post("/api/keys/reseal")["resealed"] == 0


def test_keys_of_the_environment_are_for_whoever_sets_it(new_server: NewServer) -> None:
    first, second = sealing.new_key(), sealing.new_key()
    with with_secrets(new_server, secret_keys=first) as (server, api):
        assert api.get("/api/keys")["place"] == "HEADWAY_SECRET_KEYS"
        said = api.problem(409, "POST", "/api/keys/rotate", "keys-in-environment")
        assert "headway keys reseal" in said["detail"]
        server.stop()
        server.environment["HEADWAY_SECRET_KEYS"] = f"{second},{first}"
        server.start()
        with Api(server.url) as again:
            assert again.post("/api/keys/reseal")["resealed"] == 3
            said = again.problem(409, "POST", "/api/keys/prune", "keys-in-environment")
            assert sealing.id_of(first) in said["detail"]


def test_what_no_key_opens_is_told_and_left_alone(new_server: NewServer) -> None:
    with with_secrets(new_server) as (server, api):
        store = open_store(server.dsn or f"sqlite:///{server.data / 'headway.db'}")
        other = Vault([sealing.new_key()], "elsewhere")
        secrets = Table("llm_callback_secrets", {"tenant": "text", "sealed": "text",
                        "made_at": "double"}, ("tenant",))  # fmt: skip
        store.write([(secrets.put(), [("zeta", other.seal("x", "y"), 0.0)])])
        store.close()
        assert sealed_by(api)[other.ids[0]] == ("missing", 1)
        api.post("/api/keys/rotate")
        answer = api.post("/api/keys/reseal")
        assert (answer["resealed"], answer["unreadable"], answer["left"]) == (3, 1, 0)


@pytest.mark.parametrize("path", ["/api/keys", "/api/keys/rotate"])
def test_no_key_and_no_secret_is_shown(new_sqlite_server: NewServer, path: str) -> None:
    with with_secrets(new_sqlite_server) as (server, api):
        answer = api.send("GET" if path.endswith("keys") else "POST", path)
        key_file = Path(server.data) / sealing.FILE
        for key in key_file.read_text().split():
            assert key not in answer.text
            assert key not in server.printed()
        assert CANARY not in answer.text
        assert key_file.stat().st_mode & 0o777 == 0o600


def test_keys_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    """What one of them has sealed could not be opened any more if another took its place."""
    ring = Ring(cast("Site", Standing(tmp_path)))
    together = threading.Barrier(8)

    def rotate(_: int) -> list[str]:
        together.wait(10)
        return [ring.rotate() for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        new = [id for ids in pool.map(rotate, range(8)) for id in ids]
    assert sorted(sealing.ids_at(str(tmp_path), {})) == sorted(new)


class Standing:
    """As much of a site as keys need to be rotated."""

    def __init__(self, directory: Path) -> None:
        self.config = Config(data=str(directory))
        self.app = self
        self.engine = self


def test_who_changes_keys_waits_for_whoever_does(tmp_path: Path) -> None:
    """Also another server that shares the directory."""
    waits = threading.Event()
    with sealing.changing(str(tmp_path)):
        other = threading.Thread(target=lambda: changed(tmp_path, waits))
        other.start()
        assert waits.wait(10)
        sealing.write_key_file(str(tmp_path), ["first"])
    other.join(10)
    assert sealing.keys_at(str(tmp_path), {})[1] == ["first", "second"]


def changed(directory: Path, waits: threading.Event) -> None:
    waits.set()
    with sealing.changing(str(directory)):
        keys = sealing.keys_at(str(directory), {})[1]
        sealing.write_key_file(str(directory), [*keys, "second"])
