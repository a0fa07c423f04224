"""Jobs of an application are made by its own routes, however somebody else asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kit import Api, new_name

LINE = "llm.line"
RULE = '{"every_s": 60}'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/jobs", {"type": LINE}),
        ("/api/work/put", {"jobs": [{"type": LINE}]}),
        ("/api/requests/enqueue", {"type": LINE, "requires_cookie": False}),
    ],
)
def test_they_are_refused(api: Api, path: str, body: dict[str, Any]) -> None:
    answer = api.send("POST", path, json=body)
    assert answer.status_code == 422
    assert "routes of their own" in answer.text


def test_also_from_a_schedule(api: Api) -> None:
    body = {"name": new_name("schedule"), "every": "1h", "job": {"type": LINE}}
    answer = api.send("POST", "/api/schedules", json=body)
    assert answer.status_code == 422
