"""`headway archive items|failures|retry|unblock|skip`: videos, one by one or by what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headway.cli import archive_layouts as layouts
from headway.cli.archive import app
from headway.cli.archive_names import all_subscriptions, subscription_meant
from headway.cli.asking import Call, asks
from headway.cli.client import Client, CommandFailed, Refused
from headway.cli.feeds import reached
from headway.cli.printing import count

ITEMS = "/api/archive/items"
FAILURES = "/api/archive/failures"
STATES = ("found", "queued", "done", "skipped", "failed", "missing")


def complete_state(incomplete: str) -> list[str]:
    return [each for each in STATES if each.startswith(incomplete)]


OfSubscription = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Only those of this subscription.")
]
InSubscription = Annotated[
    str | None, typer.Option("--of", metavar="ID", help="Only those of this subscription.")
]
OfClass = Annotated[
    str | None, typer.Option("--class", metavar="CLASS", help="Only these: gone, network, …")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="[ITEM]...", min=1, help="The numbers of videos.")
]
AllFailed = Annotated[bool, typer.Option("--all", help="All that have failed.")]


# ---------------------------------------------------------------------- looking


@app.command("items")
@asks
def items(
    call: Call,
    id: OfSubscription = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="|".join(STATES), autocompletion=complete_state,
                     help="Only those in this state."),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", "-s", metavar="TEXT", help="In title, uploader or address."),
    ] = None,
    limit: Limit = 20,
) -> None:  # fmt: skip
    """Videos, the newest first, and what became of them."""
    if state is not None and state not in STATES:
        raise typer.BadParameter(f"{state!r} is no state; known are {', '.join(STATES)}")
    client = reached(call)
    answer = _found(client, ITEMS, limit, subscription=_number(client, id), state=state, q=search)
    _show(call, answer, layouts.item_table)


@app.command("failures")
@asks
def failures(call: Call, id: OfSubscription = None, of: OfClass = None, limit: Limit = 20) -> None:
    """What has failed for good, why, and how many of each class."""
    client = reached(call)
    query = {"subscription": _number(client, id), "class": of}
    _show(call, _found(client, FAILURES, limit, **query), layouts.failure_table)


def _number(client: Client, said: str | None) -> int | None:
    return None if said is None else subscription_meant(client, said)["id"]


def _found(client: Client, path: str, limit: int, **query: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for page in client.pages(path, limit, **query):
        listed = answer.get("items", []) + page["items"]
        answer = {**page, "items": listed, "count": len(listed)}
    return {name: value for name, value in answer.items() if name not in ("page", "size")}


def _show(call: Call, answer: dict[str, Any], render: Any) -> None:
    if call.out.as_json:
        call.out.line(answer, indent=2)
        return
    names: dict[int, str] = {}
    if any(each["subscription"] for each in answer["items"]):
        names = {each["id"]: each["name"] for each in all_subscriptions(reached(call))}
    call.out.console.print(render(answer, names, call.out.console.width))


# ---------------------------------------------------------------------- deciding


@app.command("retry")
@asks
def retry(
    call: Call, numbers: Numbers = None, all: AllFailed = False, id: InSubscription = None,
    of: OfClass = None,
) -> None:  # fmt: skip
    """Try videos again that have failed, were skipped, or are missing: they are in line at once."""
    _decide(call, "retry", numbers, all, id, of, "in line")


@app.command("unblock")
@asks
def unblock(
    call: Call, numbers: Numbers = None, all: AllFailed = False, id: InSubscription = None,
    of: OfClass = None,
) -> None:  # fmt: skip
    """Take back that videos were given up: the next download of their subscription gets them."""
    _decide(call, "unblock", numbers, all, id, of, "as if just found")


@app.command("skip")
@asks
def skip(
    call: Call,
    numbers: Annotated[
        list[int], typer.Argument(metavar="ITEM...", min=1, help="The numbers of videos.")
    ],
) -> None:
    """Leave videos out. What is in line for them is cancelled."""
    _each(call, "skip", numbers, "left out")


def _decide(
    call: Call, verb: str, numbers: Sequence[int] | None, all: bool, id: str | None,
    of: str | None, word: str,
) -> None:  # fmt: skip
    narrowed = id is not None or of is not None
    if bool(numbers) == (all or narrowed):
        raise typer.BadParameter("name videos, or say --all, --of or --class")
    if numbers:
        _each(call, verb, numbers, word)
        return
    client = reached(call)
    said = {"subscription": _number(client, id), "class": of}
    body = {name: value for name, value in said.items() if value is not None}
    answer = client.post(f"{FAILURES}/{verb}", body)
    if call.out.as_json:
        call.out.line(answer, indent=2)
    else:
        call.out.say(_now(answer["changed"], word))


def _each(call: Call, verb: str, numbers: Sequence[int], word: str) -> None:
    """One that cannot be changed does not keep the others."""
    changed: list[Any] = []
    wrong: list[dict[str, Any]] = []
    for number in dict.fromkeys(numbers):
        try:
            changed.append(reached(call).post(f"{ITEMS}/{number}/{verb}"))
        except Refused as error:
            if error.status not in (404, 409):
                raise
            wrong.append({"id": number, "why": str(error)})
    if not changed:
        raise CommandFailed("; ".join(each["why"] for each in wrong))
    if call.out.as_json:
        call.out.line({"items": changed, "refused": wrong}, indent=2)
    else:
        call.out.say(_now(len(changed), word))
    for each in wrong:
        call.out.aside(each["why"])
    if wrong:
        sys.exit(1)


def _now(many: int, word: str) -> str:
    return f"{count(many, 'video')} {'is' if many == 1 else 'are'} {word} now"
