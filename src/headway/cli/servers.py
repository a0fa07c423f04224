"""`headway servers`: who shares the store, and who leads."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from headway.cli.asking import Call, asks
from headway.cli.printing import plain, rows, table, word

STYLES = {"leads": "bold green", "follows": "bright_black"}


@asks
def servers(call: Call) -> None:
    """The servers that share the store. One leads, and any of them answers."""
    call.out.show(call.client.get("/api/servers"), _layout)


def _layout(answer: dict[str, Any]) -> RenderableType:
    items = [
        (
            word(each["role"], STYLES[each["role"]]), Text(plain(each["url"])),
            Text(plain(each["host"])), Text(str(each["pid"])), Text(plain(each["version"])),
            Text(f"{each['seen_s']:.0f} s ago"),
        )
        for each in answer["items"]
    ]  # fmt: skip
    columns = table("role", "address", "host", "process", "version", "seen")
    return rows(columns, items, "No server runs.")
