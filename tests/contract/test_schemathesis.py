"""schemathesis tries every operation of the OpenAPI document, and chains of them, on the running
program: nothing breaks, and no answer is other than the document says.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.contract.document import document_of
from tests.contract.kit import Api
from tests.servers import Server, server_on

ROOT = Path(__file__).parents[2]
CONFIG = Path(__file__).with_name("schemathesis.toml")
STREAMS = 2  # operations that are not tried, since their answers never end
UNMADE = 1  # for which no good request at the edge of what is allowed can be made up


def try_all(server: Server, many: int, phases: str, *more: str) -> str:
    """What schemathesis says of the server, if it finds nothing wrong."""
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run",
            f"{server.url}/openapi.json", "--phases", phases, "--max-examples", str(many),
            "--no-color", "--no-shrink", *more,
        ],
        cwd=server.log.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    said = done.stdout
    assert done.returncode == 0, f"{said[said.find('FAILURES') - 40 :]}\n{faults(server)}"
    assert not faults(server)
    assert httpx2.get(f"{server.url}/readyz").status_code == 200
    return said


# What is wrong on purpose is tried by the tests of each route, and in the soak.
GOOD = ("--mode", "positive")

# The archive is on, but no site is ever called.
ARCHIVE = {"media_on": "yes", "media_python": "/bin/false"}


def hasty(directory: Path) -> str:
    """Clients of the fair queue wait for a moment only."""
    path = directory / "config.json"
    path.write_text('{"fairQueue": {"pollWindowMs": 20}}')
    return str(path)


def faults(server: Server) -> str:
    """What the server itself calls a fault."""
    printed = server.printed()
    return printed[printed.index("Traceback") :] if "Traceback" in printed else ""


def operations_tried(said: str) -> int:
    found = re.search(r"^  Tested: (\d+)$", said, re.MULTILINE)
    assert found is not None, said
    return int(found.group(1))


@pytest.mark.timeout(240)
def test_every_operation_is_as_the_document_says(tmp_path: Path) -> None:
    with server_on("sqlite", fairqueue=hasty(tmp_path), **ARCHIVE) as server:
        said = try_all(server, 1, "examples,fuzzing", "--generation-deterministic", *GOOD)
        every = len(document_of(server.url).operations)
        assert operations_tried(said) == every - STREAMS


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_chains_of_operations_are_as_the_document_says(tmp_path: Path) -> None:
    with server_on("sqlite", fairqueue=hasty(tmp_path), **ARCHIVE) as server:
        said = try_all(server, 25, "stateful", "--generation-deterministic")
        links = re.search(r"API Links: +(\d+) covered", said)
        assert links is not None, said
        assert int(links.group(1)) >= 10
        # Jobs were really made, taken and ended by these calls.
        with Api(server.url) as api:
            assert api.get("/api/jobs", status="ended")["total"] > 0


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_every_edge_of_every_operation_is_as_the_document_says(tmp_path: Path) -> None:
    with server_on("sqlite", fairqueue=hasty(tmp_path), **ARCHIVE) as server:
        said = try_all(server, 3, "examples,coverage", "--generation-deterministic", *GOOD)
        every = len(document_of(server.url).operations)
        assert operations_tried(said) == every - STREAMS - UNMADE


@pytest.mark.soak
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("seed", [1, 2])
def test_many_more_of_them(store: str, seed: int, tmp_path: Path) -> None:
    with server_on(store, fairqueue=hasty(tmp_path), **ARCHIVE) as server:
        try_all(server, 100, "examples,coverage,fuzzing", "--seed", str(seed))
        try_all(server, 500, "stateful", "--seed", str(seed))


@pytest.mark.soak
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_the_same_with_a_token(tenant: str | None) -> None:
    """One for everything, and one that is bound to a tenant."""
    with server_on("sqlite") as server:
        scopes = ["read", "submit", "operate"] + ([] if tenant else ["admin"])
        with Api(server.url) as api:
            body = {"name": "robot", "scopes": scopes, "tenant": tenant}
            token = api.post("/api/tokens", body, 201)["token"]
        header = f"Authorization: Bearer {token}"
        try_all(server, 30, "coverage,fuzzing,stateful", "--seed", "3", "--header", header)
