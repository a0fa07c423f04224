"""`headway learned`: what is believed about upstreams, pinning it, and taking it elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.asking import Call, asks, lists_by_default
from headway.cli.client import CommandFailed, part
from headway.cli.printing import count, facts, number, plain, rows, table
from headway.cli.times import ago, at_and_ago

app = typer.Typer(name="learned", help="What was learned about upstreams, and pinning it.")

UNITS = ("rpm", "tpm", "concurrency")
Name = Annotated[str, typer.Argument(metavar="NAME", help="An upstream.")]


# ---------------------------------------------------------------------- looking


@asks
def list_(call: Call) -> None:
    """Upstreams that learn: what they are believed to bear, and how much of it is in use."""
    call.out.show(call.client.get("/api/learned"), learned_table)


lists_by_default(app, list_)


@app.command("show")
@asks
def show(call: Call, name: Name) -> None:
    """Beliefs, pins, what goes there now, and the last 429s of one upstream."""
    call.out.show(call.client.get(_path(name)), learned_facts)


def _path(name: str, verb: str = "") -> str:
    return f"/api/upstreams/{part(name)}/learned{verb}"


# ---------------------------------------------------------------------- steering


@app.command("pin")
@asks
def pin(
    call: Call,
    name: Name,
    rpm: Annotated[float | None, typer.Option(help="Requests per minute.")] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens per minute.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Calls at once.")] = None,
    no_rpm: Annotated[bool, typer.Option("--no-rpm", help="Take that pin off.")] = False,
    no_tpm: Annotated[bool, typer.Option("--no-tpm", help="Take that pin off.")] = False,
    no_concurrency: Annotated[
        bool, typer.Option("--no-concurrency", help="Take that pin off.")
    ] = False,
) -> None:
    """Believe this and nothing else: `--rpm 300`. `--no-rpm` lets it learn again."""
    values = {"rpm": rpm, "tpm": tpm, "concurrency": concurrency}
    off = {"rpm": no_rpm, "tpm": no_tpm, "concurrency": no_concurrency}
    for unit in UNITS:
        if off[unit] and values[unit] is not None:
            raise typer.BadParameter(f"say either --{unit} or --no-{unit}")
    pins = {unit: values[unit] for unit in UNITS if off[unit] or values[unit] is not None}
    if not pins:
        raise typer.BadParameter("say what to pin: --rpm, --tpm or --concurrency")
    call.out.show(call.client.post(_path(name, "/pin"), pins), learned_facts)


@app.command("reset")
@asks
def reset(call: Call, name: Name) -> None:
    """Forget what was learned, and start again from hints or from nothing. Pins stay."""
    call.out.show(call.client.post(_path(name, "/reset")), learned_facts)


@app.command("export")
@asks
def export(
    call: Call,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else to stdout.")
    ] = None,
) -> None:
    """Write all that was learned as JSON, for `headway learned import` elsewhere."""
    answer = call.client.get("/api/learned")
    if output is None:
        call.out.line(answer, indent=2)
        return
    try:
        output.write_text(json.dumps(answer, ensure_ascii=False, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise CommandFailed(f"{output} cannot be written: {error.strerror}") from error
    if call.out.as_json:
        call.out.line({"file": str(output), "upstreams": len(answer["items"])}, indent=2)
    else:
        call.out.say(f"exported {count(len(answer['items']), 'upstream')} to {output}")


@app.command("import")
@asks
def import_(
    call: Call,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` has written.")],
) -> None:
    """Start from what another server has learned, where nothing is known yet."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"{file} is no export of what was learned: {error}") from error
    call.out.show(call.client.post("/api/learned/import", found), imported_words)


# ---------------------------------------------------------------------- how it looks


def learned_table(answer: dict[str, Any]) -> RenderableType:
    numbers = ("rpm", "tpm", "at once", "online/min", "queued/min", "remaining")
    found = table("upstream", *numbers, "source", "phase", right=numbers, cut=("upstream",))
    return rows(
        found,
        (
            (each["name"], *(believed_words(each, unit) for unit in UNITS),
             number(each["online"]["rpm"]), number(each["queued"]["rpm"]),
             f"{100 * each['remaining']:.0f} %", each["source"], phase_words(each))
            for each in answer["items"]
        ),
        "no upstream learns; switch it on with `headway upstreams set NAME learn=true`",
    )  # fmt: skip


def believed_words(each: dict[str, Any], unit: str) -> str:
    pinned = "" if each["pins"][unit] is None else " pinned"
    return f"{number(each['believed'][unit])}{pinned}"


def phase_words(each: dict[str, Any]) -> str:
    words: str = each["phase"]
    if each["holding_why"]:
        words += f" ({each['holding_why']})"
    until = each["closed_until"] or (each["opens_at"] if each["phase"] == "holding" else None)
    return f"{words}, opens {ago(until)}" if until else words


def learned_facts(each: dict[str, Any]) -> RenderableType:
    believed, limit = each["believed"], each["limit_rpm"]
    what = facts((
        ("upstream", each["name"]), ("phase", phase_words(each)),
        ("requests per minute", believed_words(each, "rpm")),
        ("tokens per minute", believed_words(each, "tpm")),
        ("calls at once", believed_words(each, "concurrency")),
        ("kind of limit", believed["limit_kind"]),
        ("plain estimate", limit and f"{number(limit)} rpm (by {each['source']})"),
        ("remaining", f"{100 * each['remaining']:.0f} %"),
        ("left unused", f"{100 * each['threshold']:.0f} %" if each["threshold"] else None),
        ("online", traffic_words(each["online"])), ("queued", traffic_words(each["queued"])),
    ))  # fmt: skip
    if not each["samples"]:
        return what
    return Group(what, Text(""), sample_table(each["samples"]))


def sample_table(samples: list[dict[str, Any]]) -> RenderableType:
    """What went on when an upstream answered 429."""
    found = table("429 at", "rpm", "answers took", right=("rpm", "answers took"))
    return rows(
        found,
        ((at_and_ago(row["ts"]), number(row["rpm"]), f"{row['avg_ms']:.0f} ms")
         for row in samples),
        "",
    )  # fmt: skip


def traffic_words(traffic: dict[str, Any]) -> str:
    return f"{number(traffic['rpm'])} in the last minute, {traffic['concurrent']} on their way"


def imported_words(answer: dict[str, Any]) -> RenderableType:
    lines = [f"{name}: starts from what was learned elsewhere" for name in answer["hinted"]]
    lines += [f"{each['name']}: left out, {each['why']}" for each in answer["left_out"]]
    return Text("\n".join(map(plain, lines)) or "there was nothing in it")
