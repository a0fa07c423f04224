"""`headway archive accounts`: who sites know the archive as. Cookies come from a file or stdin, and
are never shown again.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from headway.cli.archive import Yes, app, confirm
from headway.cli.archive_names import ACCOUNTS, account_meant
from headway.cli.archive_watching import watch_job
from headway.cli.archive_words import cookies_from
from headway.cli.asking import Call, asks, lists_by_default, named
from headway.cli.feeds import asks_sites, reached
from headway.cli.printing import WIDE, facts, plain, rows, table
from headway.cli.times import ago, at_and_ago

accounts = typer.Typer(name="accounts", help="Who sites know the archive as.")
app.add_typer(accounts)

STYLES = {"healthy": "green", "unchecked": "blue", "cooling": "yellow", "disabled": "red",
          "expired": "red"}  # fmt: skip
ROOMY = 100  # columns

AccountName = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, how that begins, or its number.")
]
Cookies = Annotated[
    str,
    typer.Option(metavar="FILE|-", help="A cookies.txt, a Cookie header or JSON of a browser "
                 "extension; - reads stdin."),
]  # fmt: skip
CheckUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where one sees who is logged in; empty: nowhere."),
]  # fmt: skip


# ---------------------------------------------------------------------- looking


@asks
def list_accounts(
    call: Call,
    site: Annotated[str | None, typer.Option(help="Only those that serve this site.")] = None,
) -> None:
    """Accounts: whether they are well, how often they are used, when their cookies end."""
    width = call.out.console.width
    answer = reached(call).get(ACCOUNTS, site=site)
    call.out.show(answer, lambda found: account_table(found, width))


lists_by_default(accounts, list_accounts)


@accounts.command("show")
@asks
def show(call: Call, name: AccountName) -> None:
    """Everything about an account but its cookies."""
    _show(call, account_meant(reached(call), name)["id"])


def _show(call: Call, id: int) -> None:
    call.out.show(reached(call).get(f"{ACCOUNTS}/{id}"), account_facts)


# ---------------------------------------------------------------------- changing


@accounts.command("add")
@asks
def add(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="To tell it from others.")],
    site: Annotated[str, typer.Option(help="Whose cookies they are, such as bilibili.com.")],
    cookies: Cookies,
    check_url: CheckUrl = None,
) -> None:
    """Add an account: `headway archive accounts add me --site bilibili.com --cookies FILE`."""
    body: dict[str, Any] = {"name": name, "site": site, "cookies": _read(call, cookies)}
    if check_url is not None:
        body["check_url"] = check_url or None
    call.out.show(reached(call).post(ACCOUNTS, body), account_facts)


@accounts.command("renew")
@asks
def renew(call: Call, name: AccountName, cookies: Cookies) -> None:
    """Replace the cookies of an account. It may be used again at once."""
    id = account_meant(reached(call), name)["id"]
    body = {"cookies": _read(call, cookies)}
    call.out.show(reached(call).put(f"{ACCOUNTS}/{id}/cookies", body), account_facts)


def _read(call: Call, file: str) -> str:
    if file == "-" and sys.stdin.isatty():
        call.out.aside("paste the cookies, and end with Ctrl-D on a line of its own")
    return cookies_from(file)


@accounts.command("check")
@asks
def check(
    call: Call,
    name: AccountName,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for it.")] = False,
) -> None:
    """Ask the site now whether it still knows the account. Fails (1) if it is of no use."""
    client = reached(call)
    asks_sites(client)
    found = account_meant(client, name)
    job = client.post(f"{ACCOUNTS}/{found['id']}/check")
    if no_wait:
        call.out.show(job, lambda _: f"it is checked, as job {job['id']}")
        return
    ended = watch_job(call, job["id"])
    checked = client.get(f"{ACCOUNTS}/{found['id']}")
    call.out.show(checked, account_facts)
    if ended["status"] != "completed":
        call.out.aside(f"it could not be checked: {ended['last_error'] or ended['status']}")
    elif checked["check_url"] is None:
        call.out.aside(
            "nobody knows where to ask its site: only the dates of its cookies were read"
        )
    if ended["status"] != "completed" or checked["status"] in ("disabled", "expired"):
        sys.exit(1)


@accounts.command("enable")
@asks
def enable(call: Call, name: AccountName) -> None:
    """Use an account again. That vouches for it until the next check."""
    _change(call, name, {"enabled": True})


@accounts.command("disable")
@asks
def disable(call: Call, name: AccountName) -> None:
    """Leave an account alone. What runs with it may end."""
    _change(call, name, {"enabled": False})


def _change(call: Call, name: str, changes: dict[str, Any]) -> None:
    id = account_meant(reached(call), name)["id"]
    call.out.show(reached(call).patch(f"{ACCOUNTS}/{id}", changes), account_facts)


@named(accounts, "rm", "remove")
@asks
def remove(call: Call, name: AccountName, yes: Yes = False) -> None:
    """Remove an account with its cookies, which nobody can get back from here."""
    found = account_meant(reached(call), name)
    what = f"the account {found['name']} at {found['site']}"
    if not yes:
        confirm(call, what)
    reached(call).delete(f"{ACCOUNTS}/{found['id']}")
    if call.out.as_json:
        call.out.line({"id": found["id"], "removed": True}, indent=2)
    call.out.say(f"{what} is removed")


# ---------------------------------------------------------------------- how it looks


def account_table(answer: dict[str, Any], width: int = WIDE) -> RenderableType:
    found = answer["items"]
    columns: dict[str, list[Any]] = {
        "id": [each["id"] for each in found],
        "name": [each["name"] for each in found],
        "site": [each["site"] for each in found],
        "status": [status_text(each) for each in found],
        "uses": [f"{each['uses']:,}" for each in found],
        "last used": [ago(each["last_used_at"]) for each in found],
        "checked": [ago(each["checked_at"]) for each in found],
        "cookies end": [ago(each["expires_at"]) for each in found],
        "what is wrong": [_trouble(each) for each in found],
    }
    if width < ROOMY:
        del columns["uses"], columns["checked"]
    if len({each["name"] for each in found}) == len(found):
        del columns["id"]  # they are long, and their names are enough
    used = {name: cells for name, cells in columns.items() if any(cells)}
    return rows(
        table(*used, right=("id", "uses"), cut=("name", "site", "what is wrong")),
        zip(*used.values(), strict=True),
        "no accounts; add one with `headway archive accounts add`",
    )


def status_text(each: dict[str, Any]) -> Text:
    if not each["enabled"]:
        return Text("off", "bright_black")
    return Text(each["status"], STYLES.get(each["status"], ""))


def _trouble(each: dict[str, Any]) -> str:
    if not each["cooled_until"]:
        return str(each["reason"])
    return f"for {ago(each['cooled_until']).removeprefix('in ')}: {each['reason'] or 'it rests'}"


def account_facts(each: dict[str, Any]) -> RenderableType:
    names = each["cookie_names"]
    return facts((
        ("account", each["id"]), ("name", each["name"]), ("site", each["site"]),
        ("status", status_text(each)),
        ("what is wrong", Text(plain(_trouble(each)), "red") if _trouble(each) else None),
        ("in use", each["in_use"] or None), ("used", f"{each['uses']:,} times"),
        ("last used", at_and_ago(each["last_used_at"])),
        ("refused", f"{each['strikes']} times in the last 15 minutes" if each["strikes"] else None),
        ("failures", each["failures"] or None), ("checked", at_and_ago(each["checked_at"])),
        ("next check", at_and_ago(each["next_check_at"])), ("checked at", each["check_url"]),
        ("cookies", "cannot be opened here" if names is None else ", ".join(names)),
        ("they end", at_and_ago(each["expires_at"])), ("added", at_and_ago(each["created_at"])),
    ))  # fmt: skip
