"""The first visit: every module that it needs is named in the document, or it would be asked for
only when the one that imports it has come.
"""

from __future__ import annotations

import re
from pathlib import Path

WEB = Path(__file__).parents[2] / "src" / "headway" / "web"
IMPORT = re.compile(r"^(?:import|export)\b[^\"';]*[\"'](\.{1,2}/[^\"']+)[\"']", re.MULTILINE)
PRELOAD = re.compile(r'rel="modulepreload" href="/static/([^"]+)"')
BEGINNINGS = ("page/main.js", "page/screens/overview/screen.js")


def needed(module: Path, found: set[Path]) -> None:
    if module not in found:
        found.add(module)
        for address in IMPORT.findall(module.read_text(encoding="utf-8")):
            needed((module.parent / address).resolve(), found)


def test_all_that_the_first_visit_needs_is_asked_for_at_once() -> None:
    found: set[Path] = set()
    for beginning in BEGINNINGS:
        needed((WEB / beginning).resolve(), found)
    names = {module.relative_to(WEB.resolve()).as_posix() for module in found}
    assert len(names) > 20
    preloaded = PRELOAD.findall((WEB / "index.html").read_text(encoding="utf-8"))
    assert sorted(preloaded) == sorted(names - {"page/main.js"})


def test_every_import_leads_somewhere() -> None:
    for module in WEB.rglob("*.js"):
        for address in IMPORT.findall(module.read_text(encoding="utf-8")):
            assert (module.parent / address).is_file(), f"{module.name} imports {address}"
