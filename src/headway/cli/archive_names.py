"""Which subscription or account somebody means: by its number, its name, or how that begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.cli.client import Client, CommandFailed, Refused

SUBSCRIPTIONS = "/api/subscriptions"
ACCOUNTS = "/api/archive/accounts"
NAMED = 3  # of those that could be meant
LONGEST = 200  # characters that the API searches for


def subscription_meant(client: Client, said: str) -> dict[str, Any]:
    """The one that somebody means. A number is the number, unless only a title is called so."""
    wanted = said.strip()
    if is_number(wanted):
        try:
            found: dict[str, Any] = client.get(f"{SUBSCRIPTIONS}/{int(wanted)}")
            return found
        except Refused as error:
            if error.status != 404:
                raise
    names = ("name", "title", "found_title", "url")
    likely = all_subscriptions(client, q=wanted[:LONGEST]) if wanted else []
    return the_one("subscription", said, likely, names, "headway archive")


def all_subscriptions(client: Client, **filters: Any) -> list[dict[str, Any]]:
    return [each for page in client.pages(SUBSCRIPTIONS, **filters) for each in page["items"]]


def account_meant(client: Client, said: str) -> dict[str, Any]:
    found = client.get(ACCOUNTS)["items"]
    wanted = said.strip()
    for each in found:
        if is_number(wanted) and each["id"] == int(wanted):
            numbered: dict[str, Any] = each
            return numbered
    return the_one("account", said, found, ("name",), "headway archive accounts")


def is_number(said: str) -> bool:
    return said.isdecimal() and said.isascii() and len(said) <= 15


def the_one(
    noun: str, said: str, found: Sequence[dict[str, Any]], names: Sequence[str], lists: str
) -> dict[str, Any]:
    """The only one that is called so or, if none is, whose name begins so. CommandFailed: none, or
    several of them.
    """
    folded = said.strip().casefold()

    def called(each: dict[str, Any]) -> list[str]:
        return [str(each[name]).casefold() for name in names if each[name]]

    meant = [each for each in found if folded in called(each)]
    if not meant and folded:
        meant = [each for each in found if any(name.startswith(folded) for name in called(each))]
    if not meant:
        raise CommandFailed(f"there is no {noun} {said!r}; `{lists}` lists them")
    if len(meant) > 1:
        listed = ", ".join(f"{each['id']} ({each['name']})" for each in meant[:NAMED])
        more = f" and {len(meant) - NAMED} more" if len(meant) > NAMED else ""
        raise CommandFailed(f"{said!r} could be {listed}{more}; write its number")
    return meant[0]
