"""`headway alerts`: who is told what needs attention, and whether it reaches them."""

from __future__ import annotations

import sys
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.asking import Call, asks, lists_by_default
from headway.cli.printing import plain, rows, table, word
from headway.cli.times import ago

STYLES = {"bad": "bold red", "warn": "yellow", "info": "bright_black"}
NOBODY = "Nobody is told: set url in [alerts] of the server's settings file."

app = typer.Typer(name="alerts", help="Who is told what needs attention.")


@asks
def list_(call: Call) -> None:
    """Receivers, and alerts that go on."""
    call.out.show(call.client.get("/api/alerts"), _layout)


lists_by_default(app, list_)


def _layout(answer: dict[str, Any]) -> RenderableType:
    receivers = [
        (
            plain(each["host"]),
            word(each["error"], "red") if each["error"] else word("reached", "green")
            if each["last_told_at"] else word("not tried yet", "bright_black"),
            ago(each["last_told_at"]), each["told"], each["waiting"],
        )
        for each in answer["receivers"]
    ]  # fmt: skip
    alerts = [(word(each["level"], STYLES[each["level"]]), ago(each["began_at"]),
               "told" if each["told_at"] else "not yet told", Text(plain(each["text"])))
              for each in answer["open"]]  # fmt: skip
    told = table("receiver", "state", "last told", "told", "waiting", right=("told", "waiting"))
    going_on = table("level", "began", "told", "what", cut=("what",))
    return Group(rows(told, receivers, NOBODY), Text(""),
                 rows(going_on, alerts, "No alert goes on."))  # fmt: skip


@app.command("test")
@asks
def test(call: Call) -> None:
    """Send a test message to every receiver, now. Fails (1) if one is not reached."""
    answer = call.client.post("/api/alerts/test")
    call.out.show(answer, lambda said: rows(
        table("receiver", "reached", "took", right=("took",), cut=("reached",)),
        [(plain(each["host"]), word("yes", "green") if each["ok"] else word(each["error"], "red"),
          f"{each['took_ms']:.0f} ms") for each in said["items"]], NOBODY,
    ))  # fmt: skip
    if not all(each["ok"] for each in answer["items"]):
        sys.exit(1)
