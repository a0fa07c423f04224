"""Files, by the official client of OpenAI and by clients that are none."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import apsw
import httpx2
import openai
import pytest
from openai import OpenAI

from tests.contract.batch_kit import client_of
from tests.contract.kit import Api, new_name
from tests.contract.test_tokens import token_for
from tests.hands.kit import eventually
from tests.servers import NewServer, Server

DAY_S = 86_400


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with client_of(server.url) as made:
        yield made


@pytest.fixture
def tenant(api: Api) -> Iterator[OpenAI]:
    """Of a tenant that nobody else is."""
    name = new_name("tenant")
    token = token_for(api, name, "read", "submit", tenant=name)
    with client_of(api.url, token) as made:
        yield made


def test_the_life_of_a_file(client: OpenAI) -> None:
    text = '{"a": "ü"}\n' * 3
    made = client.files.create(file=("in.jsonl", text.encode()), purpose="batch")
    assert made.id.startswith("file-")
    assert (made.object, made.purpose, made.status) == ("file", "batch", "processed")
    assert (made.filename, made.bytes) == ("in.jsonl", len(text.encode()))
    assert made.expires_at == made.created_at + 30 * DAY_S
    assert client.files.retrieve(made.id) == made
    assert made in list(client.files.list())
    assert client.files.content(made.id).text == text
    gone = client.files.delete(made.id)
    assert (gone.id, gone.deleted, gone.object) == (made.id, True, "file")
    for look in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError) as caught:
            look(made.id)
        assert caught.value.code == "file_not_found"
    assert made.id not in [file.id for file in client.files.list()]


def test_what_is_kept_longer_or_shorter(client: OpenAI) -> None:
    short = client.files.create(
        file=("x", b"x"), purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3_600},
    )  # fmt: skip
    assert short.expires_at == short.created_at + 3_600
    assert client.files.create(file=("x", b"x"), purpose="user_data").expires_at is None
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.create(
            file=("x", b"x"), purpose="batch",
            expires_after={"anchor": "created_at", "seconds": 5},
        )  # fmt: skip
    assert caught.value.param == "expires_after[seconds]"


def test_lists_come_in_pages_and_in_order(tenant: OpenAI) -> None:
    made = [tenant.files.create(file=(f"{n}", b"x"), purpose="batch").id for n in range(4)]
    other = tenant.files.create(file=("other", b"x"), purpose="user_data").id
    first = tenant.files.list(limit=2, purpose="batch")
    assert [file.id for file in first.data] == [made[3], made[2]]
    assert first.has_more
    rest = tenant.files.list(limit=2, purpose="batch", after=made[2])
    assert [file.id for file in rest.data] == [made[1], made[0]]
    assert not rest.has_more
    assert [file.id for file in tenant.files.list(order="asc", limit=3)] == [*made, other]
    with pytest.raises(openai.BadRequestError) as caught:
        tenant.files.list(after="file-unknown")
    assert caught.value.param == "after"


def test_a_file_may_be_larger_than_other_bodies(client: OpenAI) -> None:
    text = "".join(f"{number} é\n" for number in range(1_000_000))
    assert len(text.encode()) > 9_000_000  # max_body is 8 MiB
    made = client.files.create(file=("large", text.encode()), purpose="user_data")
    assert made.bytes == len(text.encode())
    assert client.files.content(made.id).content == text.encode()
    client.files.delete(made.id)


@pytest.mark.parametrize(
    ("content", "purpose", "param"),
    [
        (b"\xff\xfe", "batch", "file"),
        (b"half a character: \xc3", "batch", "file"),
        (b"a NUL: \x00", "batch", "file"),
        (b"x", "fine-tune", "purpose"),
    ],
)
def test_what_cannot_be_a_file_leaves_nothing_behind(
    tenant: OpenAI, content: bytes, purpose: Any, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        tenant.files.create(file=("x", content), purpose=purpose)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert list(tenant.files.list()) == []


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"file": "x"}},
        {"data": {"purpose": "batch"}},
        {"files": {"other": ("x", b"x")}, "data": {"purpose": "batch"}},
        {"files": [("file", ("a", b"a")), ("file", ("b", b"b"))], "data": {"purpose": "batch"}},
        {"files": {"file": ("a", b"a")}, "data": {"purpose": "p" * 2_000}},
        {"files": {"file": ("a", b"a")}, "data": {f"field-{n}": "x" for n in range(50)}},
        {"content": b"nonsense", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"--x\r\n", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
    ],
)
def test_what_is_no_form_is_refused(api: Api, sent: dict[str, Any]) -> None:
    answer = api.send("POST", "/v1/files", **sent)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_the_file_may_come_before_its_purpose(api: Api) -> None:
    """As `curl -F file=@in.jsonl -F purpose=batch` sends it."""
    body = (
        b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        b"\r\n--y\r\n"
        b'\r\n--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x--\r\n'
    )
    headers = {"content-type": 'multipart/form-data; boundary="x"'}
    made = api.ok("POST", "/v1/files", content=body, headers=headers)
    assert (made["filename"], made["purpose"], made["bytes"]) == ("a.jsonl", "batch", 7)
    assert api.send("GET", f"/v1/files/{made['id']}/content").content == b"\r\n--y\r\n"


def test_a_tenant_sees_and_deletes_its_own_files_only(api: Api, client: OpenAI) -> None:
    tokens = {}
    for name in ("alice", "bob"):
        tokens[name] = token_for(api, name, "read", "submit", tenant=new_name(name))
    with client_of(api.url, tokens["alice"]) as alice, client_of(api.url, tokens["bob"]) as bob:
        made = alice.files.create(file=("secret", b"secret"), purpose="batch")
        for look in (bob.files.retrieve, bob.files.content, bob.files.delete):
            with pytest.raises(openai.NotFoundError):
                look(made.id)
        assert list(bob.files.list()) == []
        with pytest.raises(openai.BadRequestError):
            bob.files.list(after=made.id)
        assert [file.id for file in alice.files.list()] == [made.id]
        assert client.files.retrieve(made.id) == made  # whoever may see all tenants


def test_who_may_only_look_neither_uploads_nor_deletes(api: Api, client: OpenAI) -> None:
    made = client.files.create(file=("x", b"x"), purpose="batch")
    with client_of(api.url, token_for(api, "reader", "read")) as reader:
        assert reader.files.content(made.id).text == "x"
        with pytest.raises(openai.PermissionDeniedError):
            reader.files.create(file=("x", b"x"), purpose="batch")
        with pytest.raises(openai.PermissionDeniedError):
            reader.files.delete(made.id)
    with client_of(api.url, token_for(api, "submitter", "submit")) as submitter:
        with pytest.raises(openai.PermissionDeniedError):
            submitter.files.content(made.id)
        submitter.files.delete(made.id)


# ---------------------------------------------------------------------- limits


def parts_in(server: Server) -> int:
    with apsw.Connection(str(server.data / "headway.db")) as db:
        return int(db.execute("select count(*) from llm_file_parts").get)


def broken_off(server: Server, body: bytes, length: int) -> None:
    """An upload that ends before its end."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), 20) as wire:
        head = (
            f"POST /v1/files HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {length}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        )
        wire.sendall(head.encode() + body)
        eventually(lambda: parts_in(server) > 0)


def test_too_large_and_broken_off(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server(max_file=1_000_000)
    with client_of(server.url) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            client.files.create(file=("x", b"x" * 1_000_000), purpose="batch")
        assert caught.value.status_code == 413
        begin = b'--x\r\ncontent-disposition: form-data; name="file"\r\n\r\n' + b"y" * 600_000

        def without_a_length() -> Iterator[bytes]:
            yield begin
            yield begin

        headers = {"content-type": "multipart/form-data; boundary=x"}
        answer = httpx2.post(f"{server.url}/v1/files", content=without_a_length(), headers=headers)
        assert answer.status_code == 413
        assert "at most 1000000 bytes" in answer.json()["error"]["message"]
        assert parts_in(server) == 0  # what was stored already is gone

        broken_off(server, begin, 900_000)
        eventually(lambda: parts_in(server) == 0)
        assert list(client.files.list()) == []
