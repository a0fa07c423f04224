"""What can be done next with an answer, for the OpenAPI document.

A reader sees which routes take the id that was just given out, and a program that tests the server
by its document follows them.
"""

from __future__ import annotations

from typing import Any

ID = {"id": "$response.body#/id"}
NAME = {"name": "$response.body#/name"}
FIRST = {"id": "$response.body#/jobs/0/id"}
FENCE = {"fence": "$response.body#/jobs/0/fence"}

# From which operation, by what, to all operations below these paths.
BELOW: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("enqueueJob", ID, ("/api/jobs/{id}", "/api/tasks/{id}")),
    ("enqueueRequest", ID, ("/api/requests/{id}",)),
    ("openBatch", ID, ("/api/batches/{id}",)),
    ("putSchedule", NAME, ("/api/schedules/{name}",)),
    ("createToken", ID, ("/api/tokens/{id}",)),
)

# From one operation to one other, with a body.
WITH_BODY: tuple[tuple[str, str, dict[str, str], dict[str, Any]], ...] = (
    ("enqueueJob", "takeWork", {}, {"types": ["$response.body#/type"]}),
    ("takeWork", "beatOneWork", FIRST, FENCE),
    ("takeWork", "completeOneWork", FIRST, {**FENCE, "status_code": 200}),
)


def add_links(document: dict[str, Any]) -> None:
    by_name = {
        operation["operationId"]: (path, operation)
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }
    for source, parameters, paths in BELOW:
        for name, (path, _) in by_name.items():
            if path.startswith(paths):
                _add(by_name[source][1], name, {"parameters": parameters})
    for source, target, parameters, body in WITH_BODY:
        said = {"parameters": parameters} if parameters else {}
        _add(by_name[source][1], target, {**said, "requestBody": body})


def _add(operation: dict[str, Any], target: str, said: dict[str, Any]) -> None:
    (success,) = (s for status, s in operation["responses"].items() if status.startswith("2"))
    success.setdefault("links", {})[target] = {"operationId": target, **said}
