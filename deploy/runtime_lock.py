"""The part of requirements.lock that a server needs, hashes included: without what only tests and
checks use. `python deploy/runtime_lock.py postgres media otel > runtime.lock` is Headway with these
extras; `python deploy/runtime_lock.py --only hatchling` is what one package needs.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VIA = re.compile(r"^    #(?: via)?\s+([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(text: str) -> str:
    found = NAME.match(text)
    assert found is not None, text
    return plain(found[0])


def entries(lock: str) -> dict[str, tuple[str, set[str]]]:
    """By name: its lines, and by whom it is needed."""
    found = {}
    for text in ENTRY.split(lock):
        if NAME.match(text):
            found[name_of(text)] = (text, {plain(each) for each in VIA.findall(text)})
    return found


def wanted(project: dict[str, object], extras: list[str]) -> set[str]:
    """What Headway itself asks for, with these extras."""
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    asked = list(project["dependencies"])  # type: ignore[call-overload]
    for extra in extras:
        if extra not in optional:
            raise SystemExit(f"there is no extra {extra}; known are {', '.join(optional)}")
        asked += optional[extra]
    return {name_of(each) for each in asked}


def part_of(lock: str, roots: set[str]) -> str:
    """These packages, and all that they need."""
    known = entries(lock)
    missing = roots - set(known)
    if missing:
        raise SystemExit(f"the lock has no {', '.join(sorted(missing))}; run `make lock`")
    needed = set(roots)
    while more := {name for name, (_, by) in known.items() if by & needed} - needed:
        needed |= more
    return "".join(known[name][0] for name in sorted(needed))


def main(arguments: list[str]) -> str:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    if arguments[:1] == ["--only"]:
        return part_of(lock, {plain(each) for each in arguments[1:]})
    return part_of(lock, wanted(about, arguments))


if __name__ == "__main__":
    print(main(sys.argv[1:]), end="")
