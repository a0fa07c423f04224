"""The fenced blocks of the documents, and what comments right before each say about it.

- `<!-- not run: needs systemd -->`: nothing is done with it; the reason is for people.
- `<!-- only parsed: asks a real site -->`: its commands are understood, and not done.
- `<!-- needs: MODULE -->`: it runs where that can be imported, and is only compiled elsewhere.
- `<!-- before: COMMANDS -->`: what a shell does first, and the reader does not see.
- `<!-- until: COMMAND -->`: it runs for ever; the next block comes when this succeeds.
- `<!-- file: NAME -->`: it is the text of this file, as if its first line were `# NAME`.
- `<!-- for: simulate -->`: these are no settings, but a model or a load for that command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("README*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

RUN = frozenset({"python", "sh", "console"})
VALIDATED = frozenset({"toml", "json", "sql"})
SHOWN = frozenset({"text"})  # drawings, and what files and programs look like
MARKS = frozenset({"not run", "only parsed", "needs", "before", "until", "file", "for"})

FENCE = re.compile(r"^( *)```(.*)$")
COMMENT = re.compile(r"<!-- ([a-z ]+):\s+(.*?)\s*-->", re.DOTALL)
COMMENTS_AT_END = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
# The first line of a block may say in which file it belongs: `# shop.py`
NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")


@dataclass(frozen=True)
class Block:
    path: Path
    line: int  # where its first line is
    language: str
    more: tuple[str, ...]  # words behind the language
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that its text belongs into."""
        named = NAMED.match(self.text)
        return self.marks.get("file") or (named.group(1) if named else None)


def blocks_in(path: Path) -> list[Block]:
    return read_blocks(path, path.read_text(encoding="utf-8"))


def read_blocks(path: Path, text: str) -> list[Block]:
    found: list[Block] = []
    before: list[str] = []
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        fence = FENCE.match(line)
        if fence is None:
            before.append(line)
            continue
        language, *more = fence.group(2).split() or [""]
        inside = []
        for _, each in lines:
            if each.strip() == "```":
                break
            inside.append(each)
        else:
            raise ValueError(f"{path}:{number}: the block does not end")
        body = dedent("\n".join([*inside, ""]))
        found.append(Block(path, number + 1, language, tuple(more), body, _marks(before)))
        before = []
    return found


def _marks(before: list[str]) -> dict[str, str]:
    """Of the comments that stand directly above a block."""
    at_end = COMMENTS_AT_END.search("\n".join(before))
    return dict(COMMENT.findall(at_end.group())) if at_end else {}


def complaints(block: Block) -> list[str]:
    """What keeps a block from being tried, although nobody says so."""
    said = []
    if block.language not in RUN | VALIDATED | SHOWN:
        said.append(f"its language is {block.language!r}; name one of "
                    f"{', '.join(sorted(RUN | VALIDATED | SHOWN))}")  # fmt: skip
    unknown = block.marks.keys() - MARKS
    if block.marks.get("for", "simulate") != "simulate":
        said.append(f"nobody knows what is read for {block.marks['for']}")
    if unknown:
        said.append(f"nobody knows what {', '.join(unknown)} means before a block")
    for mark in ("not run", "only parsed"):
        if mark in block.marks and len(block.marks[mark].split()) < 2:
            said.append(f"say in a few words why it is {mark}")
    if block.more not in ((), ("continuation",)):
        said.append(f"nobody knows what {' '.join(block.more)!r} means behind the language")
    return [f"{block.place}: {each}" for each in said]
