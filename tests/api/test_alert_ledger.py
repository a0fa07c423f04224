"""What is told of what needs attention: that it begins, gets worse, goes on, and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.apps.alerts.falling import HOUR_S, Falls
from headway.apps.alerts.ledger import Ledger, Message, What
from headway.apps.alerts.receiver import summary
from headway.apps.alerts.settings import AlertSettings, alert_settings
from headway.errors import BadSettings
from headway.net.webhooks import new_secret


def seen(name: str = "a.example", kind: str = "upstream_closed", level: str = "warn") -> Any:
    return {
        "kind": kind, "level": level, "subject": {"kind": "upstream", "name": name},
        "since": None, "until": None, "values": {}, "text": f"{name} is closed",
    }  # fmt: skip


def new_ledger(**said: Any) -> Ledger:
    settings = AlertSettings(**said)
    return Ledger(settings.wants, repeat_s=settings.repeat_s, calm_s=settings.calm_s)


def told(messages: list[Message]) -> list[str]:
    return [each.what.value for each in messages]


def test_each_change_is_told_once() -> None:
    ledger = new_ledger()
    assert told(ledger.hear([seen()], 0.0)) == ["alert.begins"]
    assert told(ledger.hear([seen()], 5.0)) == []
    assert told(ledger.hear([], 10.0)) == []  # it may be back in a moment
    assert told(ledger.hear([seen()], 15.0)) == []
    [end] = ledger.hear([], 45.0)
    assert end.what is What.ENDS
    assert told(ledger.hear([], 50.0)) == []
    assert ledger.heard_of(end, 51.0) == "upstream_closed:upstream:a.example"
    assert told(ledger.hear([seen()], 60.0)) == ["alert.begins"]


def test_what_is_back_before_its_end_was_heard_of_begins_anew() -> None:
    """Its two ends are two messages, of which a receiver drops none as the same."""
    ledger = new_ledger()
    [first] = ledger.hear([seen()], 0.0)
    ledger.heard_of(first, 1.0)
    [end] = ledger.hear([], 60.0)
    [again] = ledger.hear([seen()], 65.0)
    assert (again.what, again.alert["began_at"]) == (What.BEGINS, 65.0)
    assert again.key != first.key
    assert ledger.heard_of(end, 70.0) is None  # of the first one
    assert told(ledger.untold(70.0)) == ["alert.begins"]
    [second_end] = ledger.hear([], 120.0)
    assert second_end.key != end.key
    assert ledger.heard_of(end, 121.0) is None
    assert ledger.heard_of(second_end, 122.0) == "upstream_closed:upstream:a.example"


def test_what_gets_worse_is_told_again_and_what_gets_better_is_not() -> None:
    ledger = new_ledger()
    ledger.hear([seen(kind="disk_low")], 0.0)
    assert told(ledger.hear([seen(kind="disk_low", level="bad")], 5.0)) == ["alert.worsens"]
    assert told(ledger.hear([seen(kind="disk_low")], 10.0)) == []


def test_what_gets_worse_before_anybody_heard_of_it_is_still_untold() -> None:
    ledger = new_ledger()
    ledger.hear([seen()], 0.0)
    assert told(ledger.hear([seen(level="bad")], 5.0)) == ["alert.worsens"]
    assert told(ledger.untold(6.0)) == ["alert.begins"]


def test_what_goes_on_for_long_is_repeated_once_somebody_has_heard_of_it() -> None:
    ledger = new_ledger(repeat_after="1h")
    [begins] = ledger.hear([seen()], 0.0)
    assert told(ledger.hear([seen()], 4_000.0)) == []
    ledger.heard_of(begins, 4_000.0)
    assert told(ledger.hear([seen()], 7_000.0)) == []
    assert told(ledger.hear([seen()], 7_600.0)) == ["alert.repeats"]
    assert new_ledger(repeat_after="off").hear([seen()], 0.0)


def test_only_what_is_wanted_is_told() -> None:
    ledger = new_ledger(kinds=("disk_*", "upstream_closed"), min_level="warn")
    shown = [seen(level="info"), seen("b"), seen("c", "jobs_failed"), seen("d", "disk_low")]
    assert [each.alert["subject"]["name"] for each in ledger.hear(shown, 0.0)] == ["b", "d"]


def many(*names: str) -> Any:
    """One sentence for all of them, as `bundled` makes it."""
    return {**seen("", "upstreams_closed"), "of": ["upstream_closed"], "text": ", ".join(names)}


@pytest.mark.parametrize("kinds", [(), ("upstream_closed",), ("upstream*_closed",)])
def test_so_many_that_they_are_one_sentence_have_not_ended(kinds: tuple[str, ...]) -> None:
    """Nor do they begin again when they are few again; the one that was never told alone does."""
    ledger = new_ledger(kinds=kinds)
    assert len(ledger.hear([seen("a"), seen("b")], 0.0)) == 2
    assert told(ledger.hear([many("a", "b", "c")], 5.0)) == ["alert.begins"]
    assert told(ledger.hear([many("a", "b", "c")], 100.0)) == []
    [begins] = ledger.hear([seen("b"), seen("c")], 105.0)
    assert (begins.what, begins.alert["subject"]["name"]) == (What.BEGINS, "c")
    ends = ledger.hear([seen("b"), seen("c")], 200.0)
    assert sorted((each.what, each.alert["subject"]["name"]) for each in ends) == [
        (What.ENDS, ""), (What.ENDS, "a"),
    ]  # fmt: skip


def test_many_of_a_kind_that_nobody_wants_are_not_told() -> None:
    ledger = new_ledger(kinds=("disk_*",))
    assert told(ledger.hear([many("a", "b")], 0.0)) == []


def test_what_passes_at_once_is_no_alert() -> None:
    ledger = Ledger(AlertSettings().wants, repeat_s=1e9, calm_s=30.0, looks=2)
    assert told(ledger.hear([seen()], 0.0)) == []
    assert told(ledger.hear([], 5.0)) == []
    assert told(ledger.hear([seen()], 10.0)) == []
    assert told(ledger.hear([seen()], 15.0)) == ["alert.begins"]


def test_while_nobody_can_be_asked_nothing_ends() -> None:
    ledger = new_ledger()
    ledger.hear([seen()], 0.0)
    silent = seen("", "engine_silent", "bad")
    assert told(ledger.hear([silent], 500.0, blind=True)) == ["alert.begins"]
    assert told(ledger.hear([seen()], 505.0)) == []
    assert told(ledger.hear([seen()], 535.0)) == ["alert.ends"]  # the engine answers again


def test_a_restart_tells_nothing_twice_and_forgets_no_end() -> None:
    first = new_ledger()
    [begins] = first.hear([seen(), seen("b", level="info")], 0.0)
    known = '{"level": "warn", "kind": "upstream_closed"}'
    rows = [
        ("upstream_closed:upstream:a.example", known, 0.0, 1.0),
        ("new:x:y", '{"level": "bad"}', 0.0, None),
        ("odd", "?", 0.0, None),
    ]
    again = new_ledger()
    again.load(rows, 100.0)
    assert [each.key for each in again.untold(100.0)] == ["new:x:y@0.000.begins"]
    assert told(again.hear([seen()], 101.0)) == []
    assert told(again.hear([], 200.0)) == ["alert.ends", "alert.ends"]
    assert begins.key == "upstream_closed:upstream:a.example@0.000.begins"  # the same after it


def test_many_are_one_summary_with_the_first_of_them_in_words() -> None:
    messages = new_ledger().hear([seen(f"{n}.example") for n in range(50)], 0.0)
    said = summary(messages)
    assert (said["type"], said["count"], said["more"]) == ("alert.summary", 50, 30)
    assert said["by_type"] == {"alert.begins": 50}
    assert len(said["alerts"]) == 20


def test_a_learner_that_has_come_down_to_half_is_noticed_for_an_hour() -> None:
    falls = Falls()
    for at, rpm in ((0.0, 100.0), (60.0, 80.0), (120.0, 40.0)):
        falls.note("a.example", "rpm", rpm, at)
    [item] = falls.attention(130.0)
    assert (item.kind, item.values["was"], item.values["now"]) == ("learner_fell", 100.0, 40.0)
    falls.note("a.example", "rpm", 60.0, 200.0)
    assert not falls.attention(210.0)
    falls.note("a.example", "rpm", 10.0, 300.0)
    assert falls.attention(310.0)
    falls.note("a.example", "rpm", 10.0, 310.0 + HOUR_S)
    assert not falls.attention(310.0 + HOUR_S)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('url = "ftp://x"', "http and https"),
        ('secret = "short"', "a secret that signs"),
        ('min_level = "loud"', "bad, warn or info"),
        ('look_every = "5"', "such as 30s"),
        ("per_minute = 0", "from 1 to 1000"),
        ("volume = 11", "has no volume"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, said: str, why: str) -> None:
    file = tmp_path / "headway.toml"
    file.write_text(f"[alerts]\n{said}\n")
    with pytest.raises(BadSettings, match=why):
        alert_settings(str(file), {})


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "headway.toml"
    secret = new_secret()
    file.write_text(f'[alerts]\nurl = ["https://a.example/x"]\nsecret = "{secret}"\n')
    environment = {"HEADWAY_ALERTS_URL": "https://b.example/y, https://c.example/z"}
    settings = alert_settings(str(file), environment)
    assert settings.url == ("https://b.example/y", "https://c.example/z")
    assert settings.secret == secret
