"""`headway channels`, `costs` and `budgets`: models behind keys, what they cost, and who may spend
how much.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from getpass import getpass
from typing import Annotated, Any

import typer

from headway.cli import channel_layouts as layouts
from headway.cli.asking import Call, asks, lists_by_default, named
from headway.cli.client import CommandFailed, part
from headway.cli.words import pairs_of

app = typer.Typer(name="channels", help="Language models behind keys, and what they bear.")
budgets = typer.Typer(name="budgets", help="What tenants may spend.")

Code = Annotated[str, typer.Argument(metavar="CODE", help="A channel.")]
Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SETTING=VALUE]...",
        help="queue_mode=both price.input_per_1k=0.5 rpm=600 max_concurrency=null …",
    ),
]
KeyEnv = Annotated[
    str | None, typer.Option(metavar="VARIABLE", help="Take the key from this variable.")
]
KeyStdin = Annotated[
    bool, typer.Option("--key-stdin", help="Read the key from stdin; it is not shown.")
]


# ---------------------------------------------------------------------- channels


@asks
def list_channels(call: Call) -> None:
    """Channels: where they lead, who may use them, what they cost."""
    call.out.show(call.client.get("/api/channels"), layouts.channel_table)


lists_by_default(app, list_channels)


@app.command("show")
@asks
def show(call: Call, code: Code) -> None:
    """All settings of one channel; its key is never shown."""
    call.out.show(call.client.get(f"/api/channels/{part(code)}"), layouts.channel_facts)


@app.command("add")
@asks
def add(
    call: Call,
    code: Code,
    model: Annotated[str, typer.Option(help="The name that callers know the model by.")],
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Such as https://api.openai.com/v1.")
    ],
    settings: Settings = None,
    key_env: KeyEnv = None,
    key_stdin: KeyStdin = False,
) -> None:
    """Add a channel: one model behind one key at one provider. It is used at once."""
    body = {"code": code, "model": model, "base_url": base_url,
            **changes_of(settings), **_key(key_env, key_stdin)}  # fmt: skip
    call.out.show(call.client.post("/api/channels", body), layouts.channel_facts)


@app.command("set")
@asks
def set_(
    call: Call,
    code: Code,
    settings: Settings = None,
    key_env: KeyEnv = None,
    key_stdin: KeyStdin = False,
) -> None:
    """Change a channel: `rpm=600 enabled=false`, or its key. What is not named stays."""
    body = {**changes_of(settings), **_key(key_env, key_stdin)}
    if not body:
        raise typer.BadParameter("say what to change: rpm=600, enabled=false, --key-env …")
    call.out.show(call.client.patch(f"/api/channels/{part(code)}", body), layouts.channel_facts)


@named(app, "rm", "remove")
@asks
def remove(call: Call, code: Code) -> None:
    """Remove a channel. What runs there may end; what waits goes to others of its model."""
    call.client.delete(f"/api/channels/{part(code)}")
    if call.out.as_json:
        call.out.line({"code": code, "removed": True}, indent=2)
    call.out.say(f"channel {code} is removed")


@app.command("capacity")
@asks
def capacity(call: Call, code: Code) -> None:
    """What a channel bears, what goes there now, and why queued work waits."""
    call.out.show(call.client.get(f"/api/channels/{part(code)}/capacity"), layouts.capacity_facts)


def changes_of(settings: Iterable[str] | None) -> dict[str, Any]:
    """`rpm=600 price.currency=EUR` as the API takes it."""
    body: dict[str, Any] = {}
    for name, value in pairs_of(settings).items():
        if name == "api_key":
            raise typer.BadParameter(
                "others can see what stands on a command line; use --key-env or --key-stdin"
            )
        outer, dot, inner = name.partition(".")
        if dot:
            body.setdefault(outer, {})[inner] = value
        else:
            body[name] = value
    return body


def _key(variable: str | None, from_stdin: bool) -> dict[str, str]:
    if variable is None and not from_stdin:
        return {}
    if variable is not None and from_stdin:
        raise typer.BadParameter("say either --key-env or --key-stdin")
    if variable is not None:
        key = os.environ.get(variable, "")
        if not key:
            raise CommandFailed(f"{variable} is not set, or empty; put the key into it")
    else:
        key = getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise CommandFailed("no key came; send it on stdin, on one line")
    return {"api_key": key.strip()}


# ---------------------------------------------------------------------- costs and budgets


@asks
def costs(
    call: Call,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="2026-11-01, or with a time.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="A date is included.")
    ] = None,
    group: Annotated[
        str, typer.Option(help="tenant, channel, model, kind or day; several with commas.")
    ] = "tenant",
    tenant: Annotated[str | None, typer.Option(help="Only of this one.")] = None,
) -> None:
    """What calls have cost, summed up from the ledger."""
    query = {"from": begin, "to": end, "group": group, "tenant": tenant}
    answer = call.client.get("/api/costs", **query)
    names = [each.strip() for each in group.split(",") if each.strip()]
    call.out.show(answer, lambda found: layouts.cost_table(found, names))


@asks
def list_budgets(call: Call) -> None:
    """What each tenant may spend, what it has spent, and when that begins anew."""
    call.out.show(call.client.get("/api/budgets"), layouts.budget_table)


lists_by_default(budgets, list_budgets)

TenantName = Annotated[
    str, typer.Argument(metavar="TENANT", help="Whose; - for calls that have no tenant.")
]
OfPeriod = Annotated[str | None, typer.Option(metavar="day|month|total", help="Only this one.")]


@budgets.command("set")
@asks
def set_budget(
    call: Call,
    tenant: TenantName,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Such as 50 or 0.25.")],
    currency: Annotated[str, typer.Argument(metavar="CURRENCY", help="Three capitals.")] = "USD",
    period: Annotated[
        str, typer.Option(metavar="day|month|total", help="Of which it is the most.")
    ] = "month",
) -> None:
    """Set what a tenant may spend: `headway budgets set acme 50 USD --period month`."""
    body = {"period": period, "amount": amount, "currency": currency}
    call.out.show(call.client.put(f"/api/budgets/{part(tenant)}", body), layouts.budget_table)


@named(budgets, "rm", "remove")
@asks
def remove_budgets(
    call: Call,
    tenant: TenantName,
    period: OfPeriod = None,
    currency: Annotated[
        str | None, typer.Option(metavar="CURRENCY", help="Only in this one.")
    ] = None,
) -> None:
    """Remove the budgets of a tenant, or one of them. It may spend again at once."""
    said = {"period": period, "currency": currency}
    query = "&".join(f"{name}={part(value)}" for name, value in said.items() if value is not None)
    call.client.delete(f"/api/budgets/{part(tenant)}" + (f"?{query}" if query else ""))
    if call.out.as_json:
        call.out.line({"tenant": tenant, "removed": True}, indent=2)
    call.out.say(f"tenant {tenant} may spend again what other budgets leave")
