"""The OpenAPI document is complete: nothing in it is left for the reader to guess."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.document import Document, Operation, asked_for_document, document_of
from tests.servers import Server, server_on

# CONTRACTS "Requests and queue" and "Tasks", "Channels" for workers.
PROMISED = """
GET /api/requests
GET /api/requests/{id}
POST /api/requests/enqueue
POST /api/requests/{id}/pause
POST /api/requests/{id}/resume
POST /api/requests/{id}/cancel
POST /api/requests/{id}/prioritize
GET /api/requests/events
GET /api/queue/stats
POST /api/queue/pause
POST /api/queue/resume
POST /api/queue/capacity
GET /api/tasks
GET /api/tasks/{id}
POST /api/tasks/{id}/pause
POST /api/tasks/{id}/resume
POST /api/tasks/{id}/cancel
POST /api/tasks/{id}/retry
GET /api/tasks/{id}/events
GET /api/tasks/stats
POST /api/tasks/cleanup
GET /api/subscriptions/{subscription}/tasks
GET /api/subscriptions
POST /api/subscriptions
GET /api/subscriptions/{id}
PATCH /api/subscriptions/{id}
DELETE /api/subscriptions/{id}
GET /api/subscriptions/{id}/expected-total
POST /api/subscriptions/{id}/refresh-list
POST /api/subscriptions/{id}/download
POST /api/subscriptions/parse-collection
GET /api/subscriptions/{id}/items
GET /api/archive/items
GET /api/archive/items/{id}
POST /api/archive/items/{id}/retry
POST /api/archive/items/{id}/unblock
POST /api/archive/items/{id}/skip
DELETE /api/archive/items/{id}
GET /api/archive/failures
POST /api/archive/failures/retry
POST /api/archive/failures/unblock
GET /api/archive
GET /api/archive/accounts
POST /api/archive/accounts
GET /api/archive/accounts/{id}
PATCH /api/archive/accounts/{id}
DELETE /api/archive/accounts/{id}
PUT /api/archive/accounts/{id}/cookies
POST /api/archive/accounts/{id}/check
GET /api/archive/reconcile
POST /api/archive/reconcile
GET /api/archive/items/{id}/file
POST /api/subscriptions/{id}/podcast
DELETE /api/subscriptions/{id}/podcast
GET /podcasts/{secret}/feed.xml
GET /podcasts/{secret}/{file}
GET /api/system/resources
GET /api/attention
GET /api/retention
PUT /api/retention
DELETE /api/retention
POST /api/jobs/bulk
POST /api/jobs/{id}/pin
POST /api/jobs/{id}/unpin
POST /api/work/put
POST /api/work/take
POST /api/work/{id}/heartbeat
POST /api/work/{id}/complete
GET /api/history
GET /api/learned
POST /api/learned/import
GET /api/upstreams/{name}/learned
POST /api/upstreams/{name}/learned/reset
POST /api/upstreams/{name}/learned/pin
GET /api/channels
POST /api/channels
GET /api/channels/{code}
PATCH /api/channels/{code}
DELETE /api/channels/{code}
GET /api/channels/{code}/capacity
POST /api/channels/calls
GET /api/channels/calls/{id}
POST /api/channels/calls/{id}/cancel
GET /api/costs
GET /api/costs/bills
GET /api/costs.csv
POST /api/backend/queue/schedule-feed
GET /api/backend/queue/task/{id}
POST /api/backend/queue/schedule-all
GET /api/backend/queue-health
GET /api/backend/feeds
POST /api/backend/feeds
PATCH /api/backend/feeds
DELETE /api/backend/feeds
GET /api/backend/feeds/{id}
PATCH /api/backend/feeds/{id}
DELETE /api/backend/feeds/{id}
POST /api/backend/rss/validate
POST /api/backend/rss/parse
POST /api/backend/rss/discover
GET /api/backend/opml
POST /api/backend/opml
GET /api/backend/articles
POST /api/backend/articles
PATCH /api/backend/articles/{id}
GET /api/backend/articles/stats
DELETE /api/backend/articles/old
GET /api/budgets
GET /api/budgets/{tenant}
PUT /api/budgets/{tenant}
DELETE /api/budgets/{tenant}
POST /v1/chat/completions
POST /v1/embeddings
GET /v1/models
GET /v1/models/{model}
GET /v1/files
POST /v1/files
GET /v1/files/{id}
GET /v1/files/{id}/content
DELETE /v1/files/{id}
GET /v1/batches
POST /v1/batches
GET /v1/batches/{id}
POST /v1/batches/{id}/cancel
"""


# What is waited for comes at once (200), or not yet (202).
WAITING = {
    "POST /api/slots", "POST /api/slots/{id}/poll", "GET /api/subscriptions/{id}/expected-total",
    "POST /api/subscriptions/parse-collection",
}  # fmt: skip

# All of it (200), or a part (206).
IN_PARTS = {"GET /api/archive/items/{id}/file", "GET /podcasts/{secret}/{file}"}


@pytest.fixture(scope="module")
def document() -> Document:
    with server_on("sqlite") as server:
        return document_of(server.url)


def named(operations: list[Operation]) -> list[str]:
    return [operation.name for operation in operations]


def test_every_promised_route_is_there(document: Document) -> None:
    assert set(PROMISED.strip().splitlines()) <= set(named(document.operations))


def test_every_operation_has_a_summary_a_name_of_its_own_and_a_group(document: Document) -> None:
    operations = document.operations
    assert named([each for each in operations if not each.said.get("summary")]) == []
    assert named([each for each in operations if not each.said.get("tags")]) == []
    names = [each.said["operationId"] for each in operations]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not name.isidentifier()] == []


def test_every_parameter_is_described(document: Document) -> None:
    missing = [
        f"{operation.name}: {parameter['name']}"
        for operation in document.operations
        for parameter in operation.said.get("parameters", [])
        if not parameter.get("description")
    ]
    assert missing == []


def test_every_body_and_each_of_its_fields_is_described(document: Document) -> None:
    schemas = document.content["components"]["schemas"]
    wanted: set[str] = set()
    for operation in document.operations:
        wanted |= referred(operation.said.get("requestBody", {}))
    todo = list(wanted)
    while todo:
        more = referred(schemas[todo.pop()]) - wanted
        wanted |= more
        todo += more
    assert len(wanted) > 15
    missing = [name for name in wanted if not schemas[name].get("description")] + [
        f"{name}.{field}"
        for name in wanted
        for field, said in schemas[name]["properties"].items()
        if not said.get("description")
    ]
    assert sorted(missing) == []


def referred(value: Any) -> set[str]:
    """The names of all schemas that are referred to."""
    if isinstance(value, list):
        return set().union(*(referred(each) for each in value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*(referred(each) for each in value.values()))
    reference = value.get("$ref")
    return found | {reference.rpartition("/")[2]} if isinstance(reference, str) else found


def test_every_success_has_a_schema_and_every_error_is_a_problem(document: Document) -> None:
    for operation in document.operations:
        successes = 0
        for status, said in operation.said["responses"].items():
            where = f"{operation.name} {status}"
            assert said["description"], where
            if status.startswith("2"):
                successes += 1
                assert said.get("content") or status == "204", where
            elif status == "304":
                assert "content" not in said, where
            else:
                if operation.path.startswith("/api/greader/"):  # reader apps know no other
                    assert list(said["content"]) == ["text/plain"], where
                    continue
                openais = operation.path.startswith("/v1/")
                kind = "application/json" if openais else "application/problem+json"
                assert list(said["content"]) == [kind], where
                shape = "OpenAIErrorAnswer" if openais else "ProblemDetails"
                assert shape in referred(said), where
        assert successes == (2 if operation.name in WAITING | IN_PARTS else 1), operation.name


def test_what_needs_no_token_says_so(document: Document) -> None:
    open_to_all = {each.path for each in document.operations if not each.said.get("security")}
    assert open_to_all == {
        "/healthz", "/readyz", "/podcasts/{secret}/feed.xml", "/podcasts/{secret}/{file}",
    }  # fmt: skip
    assert set(document.content["components"]["securitySchemes"]) == {"bearer", "session"}


def test_nothing_is_referred_to_that_is_not_there_nor_there_for_nothing(
    document: Document,
) -> None:
    schemas = set(document.content["components"]["schemas"])
    assert referred(document.content) == schemas


def test_the_document_is_what_the_running_program_serves(server: Server) -> None:
    document = asked_for_document(server.url)
    assert document.content == document_of(server.url).content  # which all answers are held against
    assert document.content["openapi"].startswith("3.1")
    assert document.content["info"]["title"] == "Headway"
