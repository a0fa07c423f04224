"""`headway attention`: what needs attention, in words."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from headway.cli.asking import Call, asks
from headway.cli.printing import plain, rows, table, word

STYLES = {"bad": "bold red", "warn": "yellow", "info": "bright_black"}


@asks
def attention(call: Call) -> None:
    """What needs attention, the worst first. Whether the set-up is right: `headway doctor`."""
    call.out.show(call.client.get("/api/attention"), _layout)


def _layout(answer: dict[str, Any]) -> RenderableType:
    items = [(word(each["level"], STYLES[each["level"]]), Text(plain(each["text"])))
             for each in answer["items"]]  # fmt: skip
    if answer["more"]:
        items.append((Text(""), Text(f"and {answer['more']} more")))
    return rows(table("level", "what", cut=("what",)), items, "Nothing needs attention.")
