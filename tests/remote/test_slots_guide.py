"""What the guide to slots shows really works."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway import App, BadStatus
from tests.servers import server_on

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "slots.md"


def block(language: str, word: str) -> str:
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S
    )
    [text] = [each for each in found if word in each]
    return text


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server_on("sqlite") as server:
        yield server.url


def looked_at(url: str, *path: str) -> dict[str, Any]:
    app = App(url)
    found: dict[str, Any] = app.store._get(*path)  # type: ignore[attr-defined]
    app.close()
    return found


@pytest.mark.skipif(not shutil.which("jq") or not shutil.which("curl"), reason="needs curl and jq")
def test_the_client_in_a_shell(url: str, tmp_path: Path) -> None:
    asked = {"HEADWAY_SERVER": url, "PAGE": f"{url}/healthz", "PATH": "/usr/bin:/bin"}
    shell = ["sh", "-e", "-c", block("sh", "/api/slots")]
    ended = subprocess.run(
        shell, env=asked, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert '"accepted":true' in ended.stdout
    assert (tmp_path / "page.html").exists()
    assert looked_at(url, "slots", "stats")["sessions"]["granted"] == 0


def test_the_client_in_python(url: str) -> None:
    names: dict[str, Any] = {}
    exec(block("python", "app.slot").replace("http://127.0.0.1:8000", url), names)
    asked: list[str] = []

    def get(address: str, status: int = 200) -> Any:
        asked.append(address)
        return SimpleNamespace(status_code=status, headers={"Retry-After": "60"}, content=b"page")

    async def aget(address: str) -> None:
        asked.append(address)

    before = looked_at(url, "slots", "stats")["counts"]["released"]
    assert names["fetch"](get, "a") == b"page"
    asyncio.run(names["fetch_all"](aget, ["b", "c"]))
    with pytest.raises(BadStatus):
        names["fetch"](partial(get, status=429), "d")
    assert "429" in looked_at(url, "upstreams", "files.example.com")["closed_why"]
    assert asked[0] == "https://files.example.com/a"
    assert [address[-1] for address in asked] == ["a", "b", "c", "d"]
    assert looked_at(url, "slots", "stats")["counts"]["released"] == before + 3
    names["app"].close()
