"""A Celery worker says that it is there, and its processes know under which name."""

from __future__ import annotations

from types import SimpleNamespace

from celery import Celery, signals

from headway.celery.announcing import Announcer
from headway.remote.client import Client
from headway.remote.taking import Introduction


def test_a_worker_has_its_name_before_it_forks() -> None:
    mine, other = Celery("mine"), Celery("other")
    client = Client("http://127.0.0.1:9")
    announcer = Announcer(mine, client, lambda: Introduction([], [], []), list)
    signals.celeryd_init.send(sender="w", instance=SimpleNamespace(app=other), options={})
    assert announcer.name == ""
    signals.celeryd_init.send(sender="w", instance=SimpleNamespace(app=mine), options={})
    assert announcer.name != ""
