"""What a process of a Celery fleet says to the server, besides what every worker does."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

import msgspec

from headway.celery.starting import Start
from headway.celery.together import Together
from headway.errors import ClaimRefused, HeadwayError, StoreUnavailable
from headway.lease_clock import lease_clock
from headway.remote.client import Ask, Client
from headway.remote.protocol import Given, Hello
from headway.remote.taking import Introduction

ANSWER_S = 10.0
LEAST_SLACK_S = 0.01
MOST_SLACK_S = 1.0
MOST = 500  # claims in one request
INF = float("inf")
LATELY = 9  # claims by which it is known how long the way takes


class Claimed(msgspec.Struct):
    """The answer to a claim. Without a job it is refused."""

    start_in_s: float | None
    job: Given | None
    why: str


class Answer(msgspec.Struct):
    """The answer to all claims of one request."""

    server: str
    took_s: float
    claims: list[Claimed]


class Heard(NamedTuple):
    """The answer to a claim, and between which moments it was given."""

    claimed: Claimed
    asked_at: float
    took_s: float
    heard_at: float


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
        self.ends_at = INF  # by Celery's own time limit
        self.start: Start | None = None  # None: at any time
        self.slack_s = 0.0


class Claims:
    """Claims of one process. They may be made from any thread. `member`: the Celery worker that it
    belongs to, by the name under which that says that it is there.
    """

    def __init__(self, client: Client, worker: str, member: str = "") -> None:
        self._client = client
        self._worker = worker
        self._member = member
        self._together = Together(self._send, MOST)
        self._ways_s: deque[float] = deque(maxlen=LATELY)  # to the server and back

    def warm_up(self) -> None:
        """The first request takes long, and should not be one that somebody waits for."""
        with suppress(HeadwayError):
            self._client.call(Ask("GET", "/healthz", answer_s=ANSWER_S), patience_s=0.0)

    def make(self, id: int, fence: int, within_s: float | None = None) -> Claim:
        """ClaimRefused: the message is void. StoreError: the server is not there. `within_s`: then
        Celery ends it, begun or not.
        """
        claim = Claim(secrets.token_hex(8), id, fence)
        if within_s is not None:
            claim.ends_at = lease_clock() + within_s
        self.ask(claim)
        return claim

    def ask(self, claim: Claim) -> None:
        """Again with a claim whose moment has passed: it gets another one, and more time."""
        claim.slack_s = slack_s = self._slack_s(claim)
        heard = self._answer(claim)
        start_in_s, job = heard.claimed.start_in_s, heard.claimed.job
        if job is None:
            raise ClaimRefused(heard.claimed.why)
        claim.asked_at, claim.job, claim.start = heard.asked_at, job, None
        if start_in_s is not None:
            # It was answered after this, and before it was heard.
            earliest_at = heard.asked_at + heard.took_s
            claim.start = Start(
                at=heard.heard_at + start_in_s, latest=earliest_at + start_in_s + slack_s
            )

    def _answer(self, claim: Claim) -> Heard:
        """A claim has a name, so it may be asked again when its answer was lost: else what was
        granted and does not begin would keep its places until its lease is over.
        """
        try:
            return self._together.ask(_question(claim))
        except StoreUnavailable:
            return self._together.ask(_question(claim))

    def _send(self, claims: list[dict[str, Any]]) -> list[Heard]:
        body = {"worker": self._worker, "member": self._member, "claims": claims}
        # Each try on its own, so that the time is measured from the one that was answered.
        ask = Ask("POST", "/api/celery/claims", body, repeats=False, answer_s=ANSWER_S)
        asked_at = lease_clock()
        answer = self._client.call(ask, Answer, patience_s=0.0)
        heard_at = lease_clock()
        self._ways_s.append(heard_at - asked_at - answer.took_s)
        return [Heard(each, asked_at, answer.took_s, heard_at) for each in answer.claims]

    def _slack_s(self, claim: Claim) -> float:
        """How late it may begin: a few times what the way usually takes. One that was late before
        promises less.
        """
        usual_s = 3.0 * median(self._ways_s) if self._ways_s else 0.0
        return min(max(LEAST_SLACK_S, usual_s, 3.0 * claim.slack_s), MOST_SLACK_S)


def _question(claim: Claim) -> dict[str, Any]:
    asked: dict[str, Any] = {"id": claim.id, "fence": claim.fence, "claim": claim.name,
                             "slack_s": claim.slack_s}  # fmt: skip
    if claim.ends_at < INF:
        asked["within_s"] = max(claim.ends_at - lease_clock(), 0.0)
    return asked


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
