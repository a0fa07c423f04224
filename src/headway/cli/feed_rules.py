"""`headway feeds rules`: what becomes of articles as they come."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import feed_layouts as layouts
from headway.cli.asking import Call, asks, lists_by_default, named
from headway.cli.client import Client, Refused, part
from headway.cli.feed_names import the_one
from headway.cli.feeds import all_feeds, app, ids_meant, reached
from headway.cli.printing import count

rules = typer.Typer(name="rules", help="What becomes of articles as they come.")
app.add_typer(rules)

RULES = "/api/backend/rules"
FIELDS = ("any", "title", "author", "link", "category", "text")
TESTS = ("contains", "lacks", "is")
ACTIONS = ("read", "star", "drop")
LOOK_S = 30.0  # how long the server is asked to wait for the end of a job

RuleName = Annotated[
    str, typer.Argument(metavar="RULE", help="Its id, the beginning of one, or its name.")
]
Conditions = Annotated[
    list[str] | None,
    typer.Option("--if", metavar="CONDITION",
                 help="TEXT, or `title contains TEXT`: any, title, author, link, category or text; "
                 "contains, lacks or is. Several must all hold."),
]  # fmt: skip
Feeds = Annotated[list[str] | None, typer.Option("--feed", metavar="FEED", help="Only there.")]
Folders = Annotated[
    list[str] | None, typer.Option("--folder", metavar="FOLDER", help="Only in it, and below.")
]


def complete_action(incomplete: str) -> list[str]:
    return [each for each in ACTIONS if each.startswith(incomplete)]


def condition_of(text: str) -> dict[str, str]:
    """`title contains rust` as the API takes it; what begins otherwise is looked for anywhere."""
    words = text.split(maxsplit=2)
    if len(words) == 3 and words[0] in FIELDS and words[1] in TESTS:
        return {"field": words[0], "test": words[1], "text": words[2]}
    words = text.split(maxsplit=1)
    if len(words) == 2 and words[0] in TESTS:
        return {"field": "any", "test": words[0], "text": words[1]}
    return {"field": "any", "test": "contains", "text": text}


def rule_meant(client: Client, said: str) -> dict[str, Any]:
    return the_one("rule", said, client.get(RULES)["items"], ("name",))


# ---------------------------------------------------------------------- looking


@asks
def list_(call: Call) -> None:
    """Your rules, in their order."""
    answer = reached(call).get(RULES)
    titles = _titles(call, answer["items"])
    call.out.show(answer, lambda found: layouts.rule_table(found, titles))


def _titles(call: Call, found: list[dict[str, Any]]) -> dict[str, str]:
    """Of feeds, if somebody will see them."""
    if call.out.as_json or not any(each.get("feeds") or "feed_id" in each for each in found):
        return {}
    return {each["id"]: each["title"] for each in all_feeds(reached(call))}


lists_by_default(rules, list_)


@rules.command("try")
@asks
def try_(
    call: Call,
    rule: Annotated[
        str | None, typer.Argument(metavar="[RULE]", help="One that there is; or say --if.")
    ] = None,
    conditions: Conditions = None,
    feed: Feeds = None,
    folder: Folders = None,
) -> None:
    """Which of your newest articles a rule would be about. Nothing changes."""
    if (rule is None) == (not (conditions or feed or folder)):
        raise typer.BadParameter("name a rule, or say what it would be about: --if, --feed, …")
    body = {"name": "try", "actions": ["read"], **_body(reached(call), conditions, feed, folder)}
    if rule is not None:
        known = rule_meant(reached(call), rule)
        sent = ("name", "actions", "conditions", "feeds", "folders")
        body = {name: known[name] for name in sent}
    answer = reached(call).post(f"{RULES}/try", body)
    titles = _titles(call, answer["items"])
    call.out.show(answer, lambda found: layouts.match_table(found, titles))


# ---------------------------------------------------------------------- changing


@rules.command("add")
@asks
def add(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it.")],
    do: Annotated[
        list[str],
        typer.Option("--do", metavar="read|star|drop", autocompletion=complete_action,
                     help="What becomes of such articles; several may be named."),
    ],
    conditions: Conditions = None,
    feed: Feeds = None,
    folder: Folders = None,
    place: Annotated[
        int | None, typer.Option(min=1, help="Among the others; without it the last.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Keep it, but do not follow it.")] = False,
) -> None:  # fmt: skip
    """Add a rule: `headway feeds rules add adverts --if "title contains sponsored" --do drop`.

    It is followed from the next article on; `apply` goes through those that are there.
    """
    body = {"name": name, "actions": do, "enabled": not off, "place": place,
            **_body(reached(call), conditions, feed, folder)}  # fmt: skip
    made = reached(call).post(RULES, body)
    titles = _titles(call, [made])
    call.out.show(made, lambda each: layouts.rule_facts(each, titles))


def _body(
    client: Client, conditions: list[str] | None, feeds: list[str] | None,
    folders: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """What was said, and nothing else."""
    said = {
        "conditions": [condition_of(each) for each in conditions or ()],
        "feeds": ids_meant(client, feeds or ()),
        "folders": list(folders or ()),
    }
    return {name: value for name, value in said.items() if value}


@named(rules, "rm", "remove")
@asks
def remove(call: Call, rule: RuleName) -> None:
    """Remove a rule. What it has done stays."""
    found = rule_meant(reached(call), rule)
    reached(call).delete(f"{RULES}/{part(found['id'])}")
    if call.out.as_json:
        call.out.line({"id": found["id"], "removed": True}, indent=2)
    call.out.say(f"rule {found['name']} is removed")


@rules.command("apply")
@asks
def apply(
    call: Call,
    rule: RuleName,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait until it is done.")
    ] = False,
) -> None:
    """Apply a rule to the articles that are there already. What has a star is not dropped."""
    client = reached(call)
    found = rule_meant(client, rule)
    asked = client.post(f"{RULES}/{part(found['id'])}/apply")
    id = asked["task_id"]
    if no_wait or client.idle:
        if call.out.as_json:
            call.out.line(asked, indent=2)
        runs = "; it runs when a server does" if client.idle else ""
        call.out.say(f"job {id} applies rule {found['name']}{runs}")
        return
    job = client.get(f"/api/jobs/{id}", wait_s=LOOK_S)
    while job["finished_at"] is None:
        job = client.get(f"/api/jobs/{id}", wait_s=LOOK_S)
    result = _result(client, id) if job["status"] == "completed" else None
    if call.out.as_json:
        call.out.line({**asked, "status": job["status"], "result": result}, indent=2)
    elif result is None:
        call.out.aside(f"job {id} has {job['status']}: {job['last_error'] or 'it was stopped'}")
    else:
        matched = count(result["matched"], "article")
        call.out.say(f"{found['name']}: {matched} of {result['looked_at']}, "
                     f"{result['changed']} changed")  # fmt: skip
    if result is None:
        sys.exit(1)


def _result(client: Client, id: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.get(f"/api/jobs/{id}/result")["value"]
        return found
    except Refused:
        return None  # it was kept no longer
