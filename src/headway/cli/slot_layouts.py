"""How slots look to people."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.printing import WIDE, facts, rows, table, word
from headway.cli.times import ago, span

ROOMY = 100  # columns
AT_ONCE_S = 0.1
SPARED = ("tenant", "kind")  # where there is little room
STYLES = {"granted": "cyan", "waiting": "blue", "reclaimed": "red"}


def slot_table(answer: dict[str, Any], width: int = WIDE) -> RenderableType:
    slots = answer["items"]
    kinds = {slot["kind"] for slot in slots}
    columns: dict[str, list[Any]] = {
        "id": [str(slot["id"]) for slot in slots],
        "state": [Text(slot["state"], style=STYLES.get(slot["state"], "")) for slot in slots],
        "upstream": [where(slot) for slot in slots],
        "tenant": [slot["tenant"] for slot in slots],
        "holder": [slot["holder"] for slot in slots],
        "kind": [slot["kind"] for slot in slots] if len(kinds) > 1 else [],
        "since": [ago(slot["granted_at"] or slot["since"]) for slot in slots],
        "lease": [lease_words(slot) for slot in slots],
        "story": [story(slot) for slot in slots],
    }
    if width < ROOMY:
        columns = {name: cells for name, cells in columns.items() if name not in SPARED}
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no empty columns
    found = table(*used, right=("id",), cut=("upstream", "tenant", "holder", "story"))
    shown = rows(found, zip(*used.values(), strict=True), "nobody waits for a slot or holds one")
    more = answer["total"] - (answer["page"] - 1) * answer["size"] - len(slots)
    if more <= 0:
        return shown
    return Group(shown, word(f"and {more} more; see them with --limit or --page", "bright_black"))


def where(slot: dict[str, Any]) -> str:
    """The upstream, or what else is held."""
    named: str = slot["upstream"] or " or ".join(slot["upstreams"])
    if named:
        return named
    return f"key {slot['key']}" if slot["key"] else f"lane {slot['lane']}"


def lease_words(slot: dict[str, Any]) -> str:
    match slot["state"]:
        case "granted":
            return f"ends {ago(slot['lease_ends_at'])}" if slot["lease_ends_at"] else ""
        case "reclaimed":
            return f"over {ago(slot['lease_ends_at'])}" if slot["lease_ends_at"] else "over"
    return ""


def story(slot: dict[str, Any]) -> str:
    """Why it waits and where it stands, or how long it has waited."""
    match slot["state"]:
        case "granted":
            waited = f"waited {span(slot['waited_s'])}" if slot["waited_s"] >= AT_ONCE_S else ""
            return waited if slot["claimed"] else "kept for its client, which is away"
        case "reclaimed":
            return "nothing was heard of its holder"
    words = "" if slot["position"] is None else f"place {slot['position']}: "
    why = slot["wait_reason"] or "waits"
    gate = f" at {slot['wait_gate']}" if slot["wait_gate"] else ""
    at = ago(slot["eta"] or slot["opens_at"])
    when = "" if not at else f", should start {at if at.startswith('in ') else 'soon'}"
    return f"{words}{why}{gate}{when}"


def slot_facts(slot: dict[str, Any]) -> RenderableType:
    return facts((
        ("slot", slot["id"]), ("state", Text(slot["state"], STYLES.get(slot["state"], ""))),
        ("story", story(slot)), ("at", where(slot)), ("tenant", slot["tenant"]),
        ("holder", slot["holder"]), ("kind", slot["kind"]), ("lane", slot["lane"]),
        ("key", slot["key"]), ("fence", slot["fence"]), ("lease", lease_words(slot)),
    ))  # fmt: skip


def stats_facts(stats: dict[str, Any]) -> RenderableType:
    kinds = [
        (f"of kind {kind}", _words(numbers))
        for kind, numbers in stats["by_kind"].items()
        if any(numbers.values())
    ]
    now, ever = _words(stats["sessions"]), _words(stats["counts"])
    parts: list[RenderableType] = [facts((("now", now), *kinds, ("since its start", ever)))]
    if stats["overshoot"]:
        parts += [Text(""), overshoot_table(stats["overshoot"])]
    return Group(*parts)


def _words(numbers: dict[str, int]) -> str:
    return ", ".join(f"{many} {name}" for name, many in numbers.items())


def overshoot_table(found: list[dict[str, Any]]) -> RenderableType:
    """Since ever: leases that ended without a word, and holders that went on nevertheless."""
    numbers = ("reclaimed", "outlived", "for")
    return rows(
        table("upstream", *numbers, right=numbers, cut=("upstream",)),
        (
            (each["upstream"] or "(none)", each["reclaimed"], each["outlived"],
             span(each["outlived_s"]))
            for each in found
        ),
        "",
    )  # fmt: skip
