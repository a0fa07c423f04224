"""`headway slot`: who waits for slots, who holds them, and running commands under them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import slot_layouts, words
from headway.cli.asking import Call, asks, lists_by_default
from headway.cli.times import seconds_of

app = typer.Typer(name="slot", help="Run commands under slots, and see who holds them.")

STATES = ("waiting", "granted", "reclaimed")

SlotId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The number of a slot.")]


def complete_state(incomplete: str) -> list[str]:
    return [each for each in STATES if each.startswith(incomplete)]


# What comes after the command's name is the command's, with and without `--` before it.
@app.command("run", context_settings={"allow_interspersed_args": False})
@asks
def run(
    call: Call,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="What to run, with its arguments.")
    ],
    upstream: Annotated[
        list[str] | None, typer.Option(help="Where the slot is; several are candidates.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="In whose name; tenants share fairly.")] = "",
    key: Annotated[str | None, typer.Option(help="One at a time of the same key.")] = None,
    lane: Annotated[str | None, typer.Option(help="The lane it stands in.")] = None,
    tool: Annotated[list[str] | None, typer.Option(help="What it shares with others.")] = None,
    weight: Annotated[float, typer.Option(help="The share of its tenant.")] = 1.0,
    priority: Annotated[int, typer.Option(help="Lower goes first; 5 is usual.")] = 5,
    lease: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long it is kept without a renewal.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Give up waiting after 30s, 5m, …")
    ] = None,
    holder: Annotated[str, typer.Option(help="Who it is, for people.")] = "",
    report_exit: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE=STATUS", help="What an exit code says of the upstream: 22=429."),
    ] = None,
    on_lost: Annotated[
        str, typer.Option(metavar="kill|keep", help="What becomes of it when the slot is lost.")
    ] = "kill",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing about waiting.")
    ] = False,
) -> None:
    """Run a command while holding a slot: `headway slot run --upstream x.com -- curl …`.

    Ends as the command does; with 75 if there was no slot in time, or it was lost.
    """
    if call.out.as_json:
        raise typer.BadParameter("what is printed is the command's; --json goes with `slot ls`")
    if on_lost not in ("kill", "keep"):
        raise typer.BadParameter(f"--on-lost is kill or keep, not {on_lost!r}")
    if not (upstream or key or lane or tool):
        raise typer.BadParameter("say what it is for: --upstream, or --key, --lane or --tool")
    wish = {
        "upstreams": tuple(upstream or ()), "lane": lane or "default", "tenant": tenant, "key": key,
        "tools": tuple(tool or ()), "weight": weight, "priority": priority, "holder": holder,
        "lease_s": None if lease is None else seconds_of(lease),
    }  # fmt: skip
    statuses = statuses_of(report_exit)
    timeout_s = None if timeout is None else seconds_of(timeout)
    from headway.cli.slot_run import run_under  # noqa: PLC0415 - no other command needs all this

    sys.exit(
        run_under(
            call.where, command, wish, timeout_s=timeout_s, statuses=statuses,
            kills=on_lost == "kill", quiet=quiet,
        )
    )  # fmt: skip


def statuses_of(pairs: list[str] | None) -> dict[int, int]:
    """`22=429`: what an exit code says of the upstream."""
    found: dict[int, int] = {}
    for code, status in words.pairs_of(pairs).items():
        if not code.isdecimal() or int(code) > 255 or type(status) is not int:
            raise typer.BadParameter(
                f"write an exit code and a status: 22=429, not {code}={status}"
            )
        if not 100 <= status <= 599:
            raise typer.BadParameter(f"{status} is no status of HTTP")
        found[int(code)] = status
    return found


@asks
def list_(
    call: Call,
    upstream: Annotated[str | None, typer.Option(help="At this upstream.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="|".join(STATES), autocompletion=complete_state,
                     help="In this state."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    page: Annotated[int, typer.Option(min=1)] = 1,
) -> None:  # fmt: skip
    """List who waits and who holds: since when, why, and until when."""
    if state is not None and state not in STATES:
        raise typer.BadParameter(f"--state is {', '.join(STATES)}, not {state!r}")
    answer = call.client.get(
        "/api/slots", upstream=upstream, tenant=tenant, state=state, page=page, size=limit
    )
    call.out.show(answer, lambda each: slot_layouts.slot_table(each, call.out.console.width))


lists_by_default(app, list_)


@app.command("show")
@asks
def show(call: Call, id: SlotId) -> None:
    """Everything about a slot."""
    call.out.show(call.client.get(f"/api/slots/{id}"), slot_layouts.slot_facts)


@app.command("end")
@asks
def end(call: Call, id: SlotId) -> None:
    """End a wait, or take a slot back. Whoever holds it hears of it when it renews its lease."""
    answer: dict[str, Any] = call.client.delete(f"/api/slots/{id}")
    if call.out.as_json:
        call.out.line(answer, indent=2)
    elif answer["ended"]:
        call.out.say(f"slot {id} is ended")
    else:
        call.out.say(f"the lease of slot {id} was over already")


@app.command("stats")
@asks
def stats(call: Call) -> None:
    """How many wait and hold, what became of the others, and who outlived a lease."""
    call.out.show(call.client.get("/api/slots/stats"), slot_layouts.stats_facts)
