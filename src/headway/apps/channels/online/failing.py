"""What is said when no channel has answered a call as it should."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from headway.api.problems import Problem
from headway.apps.channels.calling import KEY_REFUSED, Answer
from headway.apps.channels.errors import CLOSED
from headway.apps.channels.online.streaming import Client, passed
from headway.core.change import Refusal

PAUSED_S = 60  # until who meets a channel that was paused may as well ask again


def is_failure(status: int) -> bool:
    """Whether another channel may do better."""
    return status == 429 or status >= 500 or 300 <= status < 400 or status in KEY_REFUSED


@dataclass(frozen=True, slots=True)
class Failure:
    """A channel that did not help. Without an answer, `error` says what happened."""

    code: str
    answer: Answer | None = None
    error: str = ""
    late: bool = False  # it took too long

    @property
    def speaks(self) -> bool:
        """Whether the client is told what the provider says."""
        return self.answer is not None and (
            self.answer.status == 429 or 500 <= self.answer.status < 600
        )

    @property
    def may_pass(self) -> bool:
        """Whether it is worth a wait."""
        return self.answer is not None and self.answer.status in (429, 503)

    def problem(self) -> Problem:
        if self.answer is not None and self.answer.status in KEY_REFUSED:
            return bad_key(self.code, f"its provider answered {self.answer.status} to it")
        if self.answer is not None:
            return Problem(502, f"channel {self.code!r} answered {self.answer.status}, which leads "
                           "nowhere; check its base_url", kind="bad-channel")  # fmt: skip
        if self.late:
            return Problem(504, f"channel {self.code!r} has not answered in time",
                           kind="timeout")  # fmt: skip
        return Problem(502, f"channel {self.code!r} could not be asked: {self.error}",
                       kind="channel-unreachable")  # fmt: skip


def bad_key(code: str, why: str) -> Problem:
    """Never a 401: that is for callers whose own key is wrong."""
    return Problem(502, f"the key of channel {code!r} is of no use: {why}; give it another one",
                   kind="channel-key-refused")  # fmt: skip


def closed(model: str, refusal: Refusal, now: float) -> Problem:
    """All are, and this one opens first."""
    seconds = refusal.until - now
    if math.isinf(seconds):
        when, after_s = "when somebody resumes it", PAUSED_S
    else:
        opens = datetime.fromtimestamp(math.ceil(refusal.until), UTC)
        when, after_s = f"at {opens:%Y-%m-%dT%H:%M:%SZ}", max(1, math.ceil(seconds))
    return Problem(
        429,
        f"all channels that serve {model!r} are closed; {refusal.gate} opens first, {when} "
        f"({refusal.why})",
        kind=CLOSED,
        headers={"Retry-After": str(after_s)},
    )


async def last_word(
    model: str, failures: list[Failure], refusal: Refusal | None, now: float, client: Client
) -> None:
    """The last answer of a provider as it is; if there is none, what went wrong instead."""
    spoken = next((each for each in reversed(failures) if each.speaks), None)
    if spoken is not None and spoken.answer is not None:
        said = spoken.answer
        await client.whole(said.status, passed(said.headers, spoken.code), said.body)
        return
    if failures:
        raise failures[-1].problem()
    assert refusal is not None  # else there would have been an attempt
    raise closed(model, refusal, now)
