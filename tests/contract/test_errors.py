"""Errors that any route may answer, tried on every route there is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import pytest

from tests.contract.document import Operation
from tests.contract.gateway_kit import error_in
from tests.contract.kit import Api, Worker, listening, problem_in
from tests.hands.kit import eventually
from tests.servers import server_on

OTHERS = ("/api/v0/", "/v1/", "/api/greader/", "/api/backend/opml")
STRANGE_IDS = ("0", "none", "-1", "1.5", "1e3", "99999999999999999999", "%20", "٣", "1;drop")


@pytest.fixture(scope="module")
def small() -> Iterator[Api]:
    """A server of narrow limits."""
    limits = {
        "max_body": 2_000, "max_depth": 10, "max_payload": 500, "max_headers": 3_000,
        "max_open_per_tenant": 3, "max_takers": 1, "max_clients": 1, "media_on": "yes",
    }  # fmt: skip
    with server_on("sqlite", **limits) as server, Api(server.url) as api:
        yield api


def ours(api: Api) -> list[Operation]:
    """The fair queue, OpenAI's API and that of reader apps are older than these rules: their own
    tests say what they answer. So do those of lists that are sent as they are.
    """
    return [each for each in api.document.operations if not each.path.startswith(OTHERS)]


def openais(api: Api) -> list[Operation]:
    return [each for each in api.document.operations if each.path.startswith("/v1/")]


def with_bodies(api: Api) -> list[Operation]:
    found = [each for each in ours(api) if "requestBody" in each.said]
    assert len(found) > 20
    return found


def test_a_body_that_is_no_json_is_400(small: Api) -> None:
    for operation in with_bodies(small):
        for wrong in (b"{", b"{'type': 1}", b"\xff\xfe", b'{"a": NaN', b"nonsense"):
            problem = small.problem(
                400, operation.method, operation.at(), content=wrong,
                headers={"Content-Type": "application/json"},
            )  # fmt: skip
            assert "JSON" in problem["detail"], operation.name


def test_a_body_of_another_shape_is_422_and_names_the_field(small: Api) -> None:
    for operation in with_bodies(small):
        for wrong in ([], "text", 5):
            problem = small.problem(422, operation.method, operation.at(), json=wrong)
            assert problem["errors"][0]["where"].startswith("body"), operation.name


def test_a_body_that_is_needed_and_missing_is_422(small: Api) -> None:
    for operation in with_bodies(small):
        if operation.said["requestBody"].get("required"):
            answer = small.send(operation.method, operation.at())
            assert answer.status_code in (400, 422), operation.name
            problem_in(answer)


def test_a_body_that_is_too_large_is_413_everywhere(small: Api) -> None:
    for operation in ours(small):
        large = b'{"type": "' + b"x" * 3_000 + b'"}'
        small.problem(413, operation.method, operation.at(), "too-large", content=large)
    chunks = iter([b"x" * 1_000] * 3)  # it does not say how large it is
    small.problem(413, "POST", "/api/jobs", "too-large", content=chunks)


def test_a_body_that_is_too_deep_is_400_everywhere(small: Api) -> None:
    for operation in with_bodies(small):
        deep = b'{"args": ' + b"[" * 20 + b"]" * 20 + b"}"
        small.problem(400, operation.method, operation.at(), "too-deep", content=deep)


def test_headers_that_are_too_large_are_431_everywhere(small: Api) -> None:
    headers = {"X-Large": "x" * 4_000}
    for operation in small.document.operations:
        answer = small.send(operation.method, operation.at(), headers=headers)
        if operation.path.startswith("/v1/"):
            error_in(answer, 431)
            continue
        assert answer.status_code == 431
        if not operation.path.startswith("/api/greader/"):
            problem_in(answer)


def test_below_v1_errors_have_openais_shape(small: Api) -> None:
    deep = b'{"model": ' + b"[" * 20 + b"]" * 20 + b"}"
    large = b'{"model": "' + b"x" * 3_000 + b'"}'
    tried = 0
    for operation in openais(small):
        if "application/json" in operation.said.get("requestBody", {}).get("content", {}):
            send = partial(small.send, operation.method, operation.at())
            assert error_in(send(content=large), 413)["code"] == "too_large"
            assert error_in(send(content=deep), 400)["code"] == "too_deep"
            error_in(send(content=b"{"), 400)
            tried += 1
    assert tried >= 2


def test_a_payload_that_is_too_large_is_413(small: Api) -> None:
    body = {"type": "x", "args": {"text": "y" * 600}}
    for path, sent in (
        ("/api/jobs", body),
        ("/api/work/put", {"jobs": [body]}),
        ("/api/requests/enqueue", {"type": "x", "requires_cookie": False, "payload": body}),
    ):
        problem = small.problem(413, "POST", path, "too-large", json=sent)
        assert "500" in problem["detail"]


def test_a_queue_that_is_full_is_429(small: Api) -> None:
    for n in range(3):
        small.enqueue("x", tenant="full", delay_s=n)
    body = {"type": "x", "tenant": "full"}
    # The engine counts what it has taken in, which is a moment after it was stored.
    eventually(lambda: small.send("POST", "/api/jobs", json=body).status_code == 429)
    for path, sent in (("/api/jobs", body), ("/api/work/put", {"jobs": [body]})):
        answer = small.send("POST", path, json=sent)
        assert answer.status_code == 429
        problem_in(answer, "queue-full")
        assert int(answer.headers["retry-after"]) > 0
    small.enqueue("x", tenant="other")


def test_too_many_who_wait_are_503(small: Api) -> None:
    with listening(small, "/api/events"):
        for path in ("/api/events", "/api/requests/events"):
            answer = small.send("GET", path)
            assert answer.status_code == 503
            problem_in(answer, "busy")
            assert int(answer.headers["retry-after"]) > 0
    small.post("/api/lanes/shut/pause")
    id = small.enqueue("some", lane="shut")
    with ThreadPoolExecutor(1) as pool, Api(small.url) as other:
        waiting = pool.submit(Worker(other, "some").ask, 1, 60_000)
        eventually(lambda: "lane:shut" in small.waiting(id)["wait_reason"])  # it waits
        answer = small.send("POST", "/api/work/take", json={"types": ["some"]})
        assert answer.status_code == 503
        problem_in(answer, "busy")
        assert int(answer.headers["retry-after"]) > 0
        small.post("/api/lanes/shut/resume")
        assert waiting.result(20)["jobs"][0]["id"] == id


def test_methods_that_are_not_there_are_405_and_say_which_are(api: Api) -> None:
    known: dict[str, set[str]] = {}
    for operation in api.document.operations:
        known.setdefault(operation.path, set()).add(operation.method)
    for operation in ours(api):
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - known[operation.path]:
            path = operation.at(id="9")
            if api.document.operation(method, path) is not None:
                continue  # /api/jobs/bulk is also /api/jobs/{id}
            answer = api.http.request(method, path)
            assert answer.status_code == 405, f"{method} {path}"
            problem_in(answer)
            listed = set(answer.headers["allow"].split(", "))
            assert known[operation.path] <= listed, path


def test_unknown_ids_are_404_whatever_they_look_like(api: Api) -> None:
    """With a body that would be right."""
    bodies = {"prioritise": {"priority": 1}, "reschedule": {"at": 1}}
    nouns = ("/api/jobs/{id}", "/api/tasks/{id}", "/api/requests/{id}", "/api/batches/{id}")
    routes = [each for each in api.document.operations if each.path.startswith(nouns)]
    assert len(routes) == 27
    for operation in routes:
        said = bodies.get(operation.path.rpartition("/")[2])
        for id in STRANGE_IDS:
            sent = {} if said is None else {"json": said}
            problem = api.problem(404, operation.method, operation.at(id=id), **sent)
            assert problem["type"] in ("unknown-job", "unknown-batch")
        api.problem(422, operation.method, operation.at(id="1" * 41))


def test_what_no_route_fits_is_404(api: Api) -> None:
    for path in ("/api", "/api/job", "/api/jobs/1/2/3", "/v2", "/openapi"):
        problem_in(api.http.get(path))
        assert api.http.get(path).status_code == 404


def test_a_text_as_another_content_type_is_still_refused_with_a_problem(api: Api) -> None:
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", ""):
        answer = api.http.post("/api/batches", content=b"label=x", headers={"Content-Type": kind})
        assert answer.status_code in (400, 415, 422)
        problem_in(answer)


def test_errors_do_not_repeat_what_was_sent(api: Api) -> None:
    secret = "hw_canary_0123456789"
    answer = api.http.post(
        "/api/jobs", json={"type": 5, "args": {"token": secret}, "key": [secret]}
    )
    assert answer.status_code == 422
    assert secret not in answer.text


def test_a_connection_that_speaks_no_http_harms_nobody(api: Api) -> None:
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(api.url.replace("http://", "https://"))
    assert api.get("/healthz") == {"status": "ok"}
