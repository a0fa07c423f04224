"""Asking the API: what goes wrong is one clear sentence."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx2
import pytest

from headway.cli.client import Client, CommandFailed, Refused, Unreachable, over_http

Answer = Callable[[httpx2.Request], httpx2.Response]


def client(answer: Answer, token: str | None = None) -> Client:
    return over_http("http://server.example:8000/", token, httpx2.MockTransport(answer))


def problem(status: int, **body: object) -> Answer:
    return lambda _: httpx2.Response(status, json=body)


def test_what_is_sent() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"ok": True})

    asked = client(answer, "hw_1_secret")
    asked.get("/api/jobs", q="type:a b", page=2, tenant=None, key="")
    asked.post("/api/jobs", {"type": "t"})

    assert str(seen[0].url).startswith("http://server.example:8000/api/jobs?")
    assert dict(seen[0].url.params) == {"q": "type:a b", "page": "2"}
    assert seen[0].headers["authorization"] == "Bearer hw_1_secret"
    assert json.loads(seen[1].content) == {"type": "t"}


def test_a_problem_is_its_detail() -> None:
    with pytest.raises(Refused, match=r"^there is no job 7$") as raised:
        client(problem(404, detail="there is no job 7")).get("/api/jobs/7")
    assert raised.value.status == 404


def test_each_field_that_is_wrong_is_named() -> None:
    errors = [{"where": "body.a", "what": "no"}, {"where": "body.b", "what": "never"}]
    with pytest.raises(Refused, match=r"^body\.a: no; body\.b: never$"):
        client(problem(422, detail="body.a: no", errors=errors)).get("/")


def test_a_server_that_wants_a_token_says_how_to_get_one() -> None:
    with pytest.raises(Refused, match="--token or HEADWAY_TOKEN"):
        client(problem(401, detail="send a token")).get("/")


@pytest.mark.parametrize("status", [200, 404, 502])
def test_another_server_is_noticed(status: int) -> None:
    with pytest.raises(Refused, match=f"answered {status}, and not as Headway does"):
        client(lambda _: httpx2.Response(status, text="<html>nginx</html>")).get("/")


def test_nobody_answers() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(Unreachable, match="is the server running"):
        client(refuse).get("/")


def test_an_answer_that_does_not_come() -> None:
    def late(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("late", request=request)

    with pytest.raises(Unreachable, match="does not answer in time"):
        client(late).get("/")


def test_nothing_to_say() -> None:
    assert client(lambda _: httpx2.Response(204)).delete("/api/tokens/x") is None


@pytest.mark.parametrize("url", ["ftp://x", "http://", "://", "http:///path"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(CommandFailed, match="is no address of a server"):
        over_http(url, None)


def test_an_address_without_a_scheme_and_with_a_password() -> None:
    assert over_http("server.example:8000", None).name == "http://server.example:8000"
    assert "secret" not in over_http("http://ann:secret@server.example", None).name


@pytest.mark.parametrize("token", ["hw_1\n2", "hw_ü", "\x00"])
def test_a_token_that_cannot_be_one_is_not_shown(token: str) -> None:
    with pytest.raises(CommandFailed, match="copy it once more") as raised:
        over_http("http://x", token)
    assert token not in str(raised.value)


def paged(request: httpx2.Request) -> httpx2.Response:
    page, size = (int(request.url.params[name]) for name in ("page", "size"))
    items = list(range(450))[(page - 1) * size : page * size]
    return httpx2.Response(200, json={"items": items, "total": 450})


@pytest.mark.parametrize(
    ("most", "sizes"), [(None, [200, 200, 50]), (450, [200, 200, 50]), (250, [200, 50]), (3, [3])]
)
def test_pages(most: int | None, sizes: list[int]) -> None:
    found = [page["items"] for page in client(paged).pages("/api/jobs", most)]

    assert [len(items) for items in found] == sizes
    assert [each for items in found for each in items] == list(range(sum(sizes)))


def test_a_stream_of_events() -> None:
    seen: list[httpx2.Request] = []
    text = (
        "retry: 1000\n\nid: 7\n\nid: 8\nevent: grant\ndata: {\"id\": 8}\n\n"
        "id: 9\nevent: reset\ndata: {}\n\n"
    )  # fmt: skip

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, text=text, headers={"Content-Type": "text/event-stream"})

    assert list(client(answer).follow(7)) == [(8, "grant", {"id": 8}), (9, "reset", {})]
    assert seen[0].headers["last-event-id"] == "7"


def test_a_stream_that_is_refused() -> None:
    with pytest.raises(Refused, match="1000 clients listen already"):
        list(client(problem(503, detail="1000 clients listen already")).follow(None))
