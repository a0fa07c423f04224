"""`headway lanes`, `upstreams`, `tools`, `types`: what holds jobs back, and setting it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headway.cli import layouts, words
from headway.cli.asking import Call, asks, named
from headway.cli.client import part
from headway.cli.times import seconds_of, stamp, time_of

PACES = ("every", "per_minute", "per_second")  # ways to say the same thing

Name = Annotated[str, typer.Argument(metavar="NAME")]
Settings = Annotated[
    list[str],
    typer.Argument(metavar="SETTING=VALUE...", help="limit=2 every=1s breaker=true …"),
]


def group(noun: str, help: str) -> typer.Typer:
    """The commands of one kind of gate."""
    app = typer.Typer(name=noun, no_args_is_help=True, help=help)
    _looking(app, noun)
    _opening(app, noun)
    _setting(app, noun)
    return app


def _looking(app: typer.Typer, noun: str) -> None:
    @named(app, "ls", "list", help=f"List {noun}: who runs, who waits, what is closed until when.")
    @asks
    def ls(call: Call) -> None:
        call.out.show(call.client.get(f"/api/{noun}"), layouts.gate_table)

    @app.command("show", help=f"Limits, paces, holders and waiters of one of the {noun}.")
    @asks
    def show(call: Call, name: Name) -> None:
        _show(call, call.client.get(f"/api/{noun}/{part(name)}"))


def _opening(app: typer.Typer, noun: str) -> None:
    def verb(word: str, help: str) -> None:
        @app.command(word, help=help)
        @asks
        def act(call: Call, name: Name) -> None:
            _show(call, call.client.post(f"/api/{noun}/{part(name)}/{word}"))

    verb("pause", "Let nothing more through until it is resumed.")
    verb("resume", "End a pause.")
    verb("open", "End a closure before its time.")

    @app.command("close", help="Close it for a while: `--for 10m`, `--until 2026-01-31T12:00`.")
    @asks
    def close(
        call: Call,
        name: Name,
        duration: Annotated[str | None, typer.Option("--for", metavar="DURATION")] = None,
        until: Annotated[str | None, typer.Option(metavar="TIME")] = None,
        why: Annotated[str, typer.Option(help="Shown to whoever wonders.")] = "",
    ) -> None:
        if (duration is None) == (until is None):
            raise typer.BadParameter("say either --for or --until")
        body: dict[str, Any] = {"why": why}
        if duration is not None:
            body["for_s"] = seconds_of(duration)
        else:
            body["until"] = stamp(time_of(until or ""))
        _show(call, call.client.post(f"/api/{noun}/{part(name)}/close", body))


def _setting(app: typer.Typer, noun: str) -> None:
    @app.command("set", help="Set limits now; they are kept, and win over code and files.")
    @asks
    def set_(call: Call, name: Name, settings: Settings) -> None:
        path = f"/api/{noun}/{part(name)}"
        wanted = words.pairs_of(settings)
        kept = set_before(call.client.get(path))
        if any(pace in wanted for pace in PACES):
            kept = {field: value for field, value in kept.items() if field not in PACES}
        _show(call, call.client.put(f"{path}/settings", {**kept, **wanted}))

    @app.command("reset", help="Back to what code, file and environment say.")
    @asks
    def reset(call: Call, name: Name) -> None:
        _show(call, call.client.delete(f"/api/{noun}/{part(name)}/settings"))


def set_before(gate: dict[str, Any]) -> dict[str, Any]:
    """What operators have set for exactly this name."""
    settings = gate["settings"]
    if settings is None or settings["declared_as"] != gate["name"]:
        return {}
    return {field: value for field, value in settings["value"].items()
            if settings["from"][field] == "operator"}  # fmt: skip


def _show(call: Call, gate: dict[str, Any]) -> None:
    call.out.show(gate, layouts.gate_facts)
