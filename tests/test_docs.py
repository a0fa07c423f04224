"""What the documents show must work: every Python block in them runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.postgres import shared_postgres

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}-{number}", code)
        for path in DOCUMENTS
        for number, code in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize(("name", "code"), blocks(), ids=[name for name, _ in blocks()])
def test_the_example_runs(
    name: str,
    code: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files where they are run
    if "DATABASE_URL" in code:
        monkeypatch.setenv("DATABASE_URL", shared_postgres().new_database())
    exec(compile(code, name, "exec"), {"__name__": "example"})
    said = re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(said)
    for line, comment in zip(printed, said, strict=True):
        assert comment.startswith(line), f"prints {line!r}, but is said to print {comment!r}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
