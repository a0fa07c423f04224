"""`headway keys`: the keys of stored secrets."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import RenderableType

from headway.cli.asking import Call, asks, lists_by_default
from headway.cli.client import CommandFailed, Refused
from headway.cli.exporting import counting
from headway.cli.printing import count, plain, rows, table, word
from headway.net import sealing

STYLES = {"seals": "green", "opens": "yellow", "missing": "bold red"}
AT_ONCE = 500

app = typer.Typer(name="keys", help="Keys that seal stored secrets.")


@asks
def list_(call: Call) -> None:
    """Which keys there are, and how many stored secrets need each. Only ids are shown."""
    call.out.show(call.client.get("/api/keys"), _layout)


lists_by_default(app, list_)


def _layout(answer: dict[str, Any]) -> RenderableType:
    found = [(plain(each["id"]), word(each["role"], STYLES[each["role"]]), each["secrets"])
             for each in answer["items"]]  # fmt: skip
    return rows(table("key", "role", "secrets", right=("secrets",)), found,
                f"There is no key yet: it is made in {answer['place']} with the first "
                "secret.")  # fmt: skip


@app.command("rotate")
@asks
def rotate(call: Call) -> None:
    """Put a new key first, and seal every stored secret again with it."""
    client = call.client
    try:
        made = client.post("/api/keys/rotate")
    except Refused as error:
        if error.status == 409 and sealing.VARIABLE in str(error):
            call.out.say(f"{sealing.VARIABLE}={sealing.new_key()},${sealing.VARIABLE}")
        raise
    call.out.say(f"key {made['id']} seals from now on")
    done = _reseal(call)
    if call.out.as_json:
        call.out.line({"id": made["id"], **done}, indent=2)
    call.out.aside("Older keys are still there. When all servers have taken over the new one, and "
                   "backups that need the old ones have a copy of them: `headway keys "
                   "prune`.")  # fmt: skip


@app.command("reseal")
@asks
def reseal(call: Call) -> None:
    """Seal again what older keys have sealed; also after a rotation that was broken off."""
    done = _reseal(call)
    if call.out.as_json:
        call.out.line(done, indent=2)


def _reseal(call: Call) -> dict[str, int]:
    resealed = 0
    with counting("secrets") as tell:
        while True:
            answer = call.client.post("/api/keys/reseal", limit=AT_ONCE)
            resealed += answer["resealed"]
            tell(resealed, resealed + answer["left"])
            if not answer["resealed"] or not answer["left"]:
                break
    call.out.say(f"sealed {count(resealed, 'secret')} again")
    if answer["unreadable"]:
        raise CommandFailed(
            f"{count(answer['unreadable'], 'secret')} cannot be opened with the keys that are "
            "here, and are left as they are; `headway keys ls` names the missing keys"
        )
    return {"resealed": resealed, "left": answer["left"]}


@app.command("prune")
@asks
def prune(call: Call) -> None:
    """Remove keys that no stored secret needs. The one that seals stays."""
    removed = call.client.post("/api/keys/prune")["removed"]
    if call.out.as_json:
        call.out.line({"removed": removed}, indent=2)
    elif removed:
        call.out.say(f"removed {', '.join(removed)}")
        call.out.aside("Backups from before the rotation need them: only a copy of yours opens "
                       "what is in those.")  # fmt: skip
    else:
        call.out.say("every key is needed")
