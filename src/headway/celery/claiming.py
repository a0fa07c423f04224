"""What a process of a Celery fleet says to the server, besides what every worker does."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from typing import Any

import msgspec

from headway.celery.starting import Start
from headway.errors import HeadwayError
from headway.lease_clock import lease_clock
from headway.remote.client import Ask, Client
from headway.remote.protocol import Given, Hello
from headway.remote.taking import Introduction

ANSWER_S = 10.0
LEAST_SLACK_S = 0.01
MOST_SLACK_S = 1.0
LATELY = 9  # claims by which it is known how long the way takes


class Granted(msgspec.Struct):
    """The answer to a claim."""

    server: str
    start_in_s: float | None
    took_s: float
    job: Given


class Here(msgspec.Struct):
    server: str
    again_s: float


class Claim:
    """A job that this process may begin. The lease is counted from before it was asked for."""

    def __init__(self, name: str, id: int, fence: int) -> None:
        self.name = name
        self.id = id
        self.fence = fence
        self.asked_at = 0.0
        self.job: Given
        self.start: Start | None = None  # None: at any time
        self.slack_s = 0.0


class Claims:
    """Claims of one process. They may be made from any thread."""

    def __init__(self, client: Client, worker: str) -> None:
        self._client = client
        self._worker = worker
        self._ways_s: deque[float] = deque(maxlen=LATELY)  # to the server and back

    def warm_up(self) -> None:
        """The first request takes long, and should not be one that somebody waits for."""
        with suppress(HeadwayError):
            self._client.call(Ask("GET", "/healthz", answer_s=ANSWER_S), patience_s=0.0)

    def make(self, id: int, fence: int) -> Claim:
        """ClaimRefused: the message is void. StoreError: the server is not there."""
        claim = Claim(secrets.token_hex(8), id, fence)
        self.ask(claim)
        return claim

    def ask(self, claim: Claim) -> None:
        """Again with a claim whose moment has passed: it gets another one, and more time."""
        claim.slack_s = slack_s = self._slack_s(claim)
        body = {"id": claim.id, "fence": claim.fence, "worker": self._worker, "claim": claim.name,
                "slack_s": slack_s}  # fmt: skip
        # Each try on its own, so that the time is measured from the one that was answered.
        ask = Ask("POST", "/api/celery/claim", body, repeats=False, answer_s=ANSWER_S)
        asked_at = lease_clock()
        answer = self._client.call(ask, Granted, patience_s=0.0)
        heard_at = lease_clock()
        claim.asked_at, claim.job = asked_at, answer.job
        claim.start = None
        self._ways_s.append(heard_at - asked_at - answer.took_s)
        if answer.start_in_s is not None:
            # It was answered after this, and before it was heard.
            earliest_at = asked_at + answer.took_s
            claim.start = Start(
                at=heard_at + answer.start_in_s, latest=earliest_at + answer.start_in_s + slack_s
            )

    def _slack_s(self, claim: Claim) -> float:
        """How late it may begin: a few times what the way usually takes. One that was late before
        promises less.
        """
        usual_s = 3.0 * median(self._ways_s) if self._ways_s else 0.0
        return min(max(LEAST_SLACK_S, usual_s, 3.0 * claim.slack_s), MOST_SLACK_S)


class FleetLine:
    """What the main process of a Celery worker says, and what producers say."""

    def __init__(self, client: Client, worker: str) -> None:
        self._client = client
        self._worker = worker

    def carry(self, types: Sequence[dict[str, Any]]) -> None:
        self._client.call(Ask("POST", "/api/celery/types", {"types": list(types)}, repeats=True))

    def hello(self, said: Introduction) -> Hello:
        body = {"worker": self._worker, "types": said.types, "settings": said.settings,
                "schedules": said.schedules}  # fmt: skip
        return self._client.call(Ask("POST", "/api/work/hello", body, repeats=True), Hello)

    def here(self, queues: Sequence[str], places: int) -> Here:
        """With 0 places: it goes."""
        body = {"worker": self._worker, "queues": list(queues), "places": places}
        ask = Ask("POST", "/api/celery/here", body, answer_s=ANSWER_S)
        return self._client.call(ask, Here, patience_s=0.0)
