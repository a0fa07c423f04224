"""What users of the request queue type into a shell works as it stands."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.contract.kit import Api, worker_of
from tests.servers import NewServer

LINES = """
curl -s http://localhost:8000/api/queue/stats | jq
curl -s -X POST 'http://localhost:8000/api/queue/pause?scope=requires_cookie'
curl -s -X POST 'http://localhost:8000/api/queue/resume?scope=all'
curl -s -X POST 'http://localhost:8000/api/queue/capacity?requires_cookie=1&no_cookie=2'
curl -s -X POST http://localhost:8000/api/requests/<job_id>/cancel
curl -s -X POST http://localhost:8000/api/requests/<job_id>/prioritize
""".strip().splitlines()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_six_lines(new_sqlite_server: NewServer, kind: str) -> None:
    server = new_sqlite_server()

    def shell(line: str, id: int | None = None) -> dict[str, object]:
        line = line.replace("localhost:8000", f"localhost:{server.port}")
        line = line.replace("<job_id>", str(id))
        if shutil.which("jq") is None:
            line = line.removesuffix("| jq")
        done = subprocess.run(["sh", "-c", line], capture_output=True, check=True, timeout=60)
        assert done.stderr == b""
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    stats, pause, resume, capacity, cancel, prioritize = LINES
    with Api(server.url) as api:
        assert shell(stats) == api.get("/api/queue/stats")
        assert shell(pause) == {"scope": "requires_cookie", "paused": True}
        assert api.get("/api/queue/stats")["paused"]["requires_cookie"]
        shell(resume)
        assert not api.get("/api/queue/stats")["paused"]["all"]
        api.post("/api/queue/capacity", requires_cookie=5, no_cookie=5)
        assert shell(capacity)["capacity"] == api.get("/api/queue/stats")["capacity"]
        assert api.get("/api/queue/stats")["capacity"]["requires_cookie"] == 1
        first, second, third = (api.request(kind)["id"] for _ in range(3))
        assert shell(cancel, first)["status"] == "canceled"
        assert shell(prioritize, third)["id"] == third
        with worker_of(api, kind) as worker:
            assert worker.run_all(2) == [third, second]
