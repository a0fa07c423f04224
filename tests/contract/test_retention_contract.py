"""For how long ended jobs are kept: configured, set at run time, and reset."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headway.api.assembly import build_app
from headway.api.config import read
from tests.contract.kit import Api


def test_what_is_set_wins_until_it_is_reset(api: Api) -> None:
    before = api.get("/api/retention")
    assert (before["completed_days"], before["failed_days"]) == (7, 30)
    assert before["purge_at"] == "02:00"
    assert before["next_purge_at"] is not None
    shown = api.ok("PUT", "/api/retention", json={"completed_days": 0.5})
    assert (shown["completed_days"], shown["failed_days"], shown["overridden"]) == (0.5, 30, True)
    assert (shown["from"]["completed_days"], shown["from"]["failed_days"]) == ("operator", "code")
    assert shown["declared"] == {"completed_days": 7, "failed_days": 30}
    shown = api.ok("PUT", "/api/retention", json={"failed_days": 90})
    assert (shown["completed_days"], shown["failed_days"]) == (7, 90), "in the place of the last"
    assert api.ok("PUT", "/api/retention", json={"failed_days": None}) == before
    assert api.ok("DELETE", "/api/retention") == before == api.get("/api/retention")
    said = [(each["event"], each["detail"]) for each in api.get("/api/audit")["items"]
            if each["subject"] == "retention:jobs"]  # fmt: skip
    assert said[1:4] == [("set", "reset"), ("set", '{"failed_days":90.0}'),
                        ("set", '{"completed_days":0.5}')]  # fmt: skip


@pytest.mark.parametrize("wrong", [
    {"completed_days": -1}, {"completed_days": "7"},
    {"failed_days": 1e9}, {"days": 7}, {"failed_days": True}, [], 5,
])  # fmt: skip
def test_what_makes_no_sense_changes_nothing(api: Api, wrong: object) -> None:
    before = api.get("/api/retention")
    api.problem(422, "PUT", "/api/retention", json=wrong)
    assert api.get("/api/retention") == before


def test_it_is_known_which_layer_has_said_so(tmp_path: Path) -> None:
    file = tmp_path / "headway.toml"
    file.write_text("[server]\ncompleted_days = 3\nfailed_days = 4\n")
    environment = {"HEADWAY_FAILED_DAYS": "12"}
    for settings_file, below in ((str(file), "file"), (None, "code")):
        config = read(settings_file, environment, data=str(tmp_path))
        with closing(build_app(config, None, settings_file, environment)) as app:
            shown = app.retention.shown()
            assert shown["from"] == {"completed_days": below, "failed_days": "environment"}
            assert (shown["completed_days"], shown["failed_days"]) == (
                3.0 if below == "file" else 7.0, 12.0
            )  # fmt: skip
