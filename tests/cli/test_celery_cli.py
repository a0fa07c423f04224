"""`headway celery`: what is to be seen of a fleet."""

from __future__ import annotations

from headway.cli.celery import _layout
from headway.cli.printing import new_console
from tests.cli.kit import Cli

FLEET = {
    "configured": True, "trouble": "", "sent": 5,
    "counts": {"claimed": 4, "refused": 0, "taken_back": 1, "unsent": 0, "late": 0},
    "workers": [{"name": "host:1", "queues": ["celery"], "places": 4, "silent_s": 3.0}],
    "queues": [{"name": "celery", "types": ["add"], "places": 4, "outstanding": 2, "unclaimed": 1,
                "why": ""}],
}  # fmt: skip


def shown(answer: dict[str, object]) -> str:
    console = new_console()
    with console.capture() as said:
        console.print(_layout(answer))
    return said.get()


def test_a_server_without_a_fleet_says_how_to_get_one(cli: Cli) -> None:
    assert "--celery-broker" in cli("celery").out
    assert cli.json("celery")["configured"] is False


def test_broker_workers_and_queues_are_shown() -> None:
    said = shown(FLEET)
    assert "reached" in said
    assert "5 sent, 4 claimed, 1 taken back, 0 refused" in said
    assert "host:1" in said


def test_a_broker_that_is_away_is_shown_with_its_reason() -> None:
    assert "away: ConnectionError" in shown({**FLEET, "trouble": "ConnectionError"})
