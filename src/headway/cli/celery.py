"""`headway celery`: the broker, the workers and the queues of a Celery fleet."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.asking import Call, asks
from headway.cli.printing import facts, plain, rows, table


@asks
def celery(call: Call) -> None:
    """The Celery fleet: its broker, its workers, and what was sent to them."""
    call.out.show(call.client.get("/api/celery"), _layout)


def _layout(answer: dict[str, Any]) -> RenderableType:
    if not answer["configured"]:
        return Text("No broker of Celery is configured; see `headway serve --celery-broker`.")
    counts = answer["counts"]
    broker = f"away: {plain(answer['trouble'])}" if answer["trouble"] else "reached"
    head = facts([
        ("broker", broker),
        ("messages", f"{answer['sent']} sent, {counts['claimed']} claimed, "
                     f"{counts['taken_back']} taken back, {counts['refused']} refused"),
    ])  # fmt: skip
    queues = rows(
        table("queue", "places", "outstanding", "unclaimed", "types", "why", cut=("types", "why")),
        [(each["name"], each["places"], each["outstanding"], each["unclaimed"],
          ", ".join(each["types"]), each["why"]) for each in answer["queues"]],
        "No type of job is carried by Celery.",
    )  # fmt: skip
    workers = rows(
        table("worker", "places", "queues", "silent for", cut=("queues",)),
        [(each["name"], each["places"], ", ".join(each["queues"]), f"{each['silent_s']:.0f} s")
         for each in answer["workers"]],
        "No Celery worker is there.",
    )  # fmt: skip
    return Group(head, queues, workers)
