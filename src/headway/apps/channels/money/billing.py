"""What calls cost: one row for each answer that was seen, written in the transaction that ends the
call. Money is counted in billionths, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from headway.api.metrics import Counts
from headway.apps.channels.channel import NANO, Channel
from headway.apps.channels.tables import ADD_BILL
from headway.core import Kind, Outcome
from headway.engine.brain import Brain

ONLINE, QUEUED, BATCH = "online", "queued", "batch"
CHARACTERS_PER_TOKEN = 4  # where nobody has counted
# Of one call. What cannot be true must not spoil the sums, which have 64 bits.
MOST_TOKENS = 1_000_000_000
MOST_NANO = 10_000_000 * NANO


class Usage(NamedTuple):
    input_tokens: int
    output_tokens: int
    estimated: bool = False

    def told_in(self, outcome: Outcome) -> Outcome:
        """The outcome with what the call has really taken, if somebody has counted."""
        if self.estimated or outcome.kind is not Kind.OK:
            return outcome
        return replace(outcome, cost=float(self.input_tokens + self.output_tokens))


class Bill(NamedTuple):
    """The columns of `llm_bills`."""

    id: str  # the same for the same answer, so that it can be written once only
    at: float
    tenant: str
    channel: str
    model: str
    kind: str
    endpoint: str
    job: int | None
    batch: str | None
    input_tokens: int
    output_tokens: int
    estimated: int
    input_per_1k: float
    output_per_1k: float
    discount: float
    cost_nano: int
    currency: str


def usage_of(answer: dict[str, Any] | None, sent: int = 0) -> Usage:
    """From what a provider says; where it says nothing, from how long question (`sent` bytes) and
    answer are.
    """
    said = None if answer is None else answer.get("usage")
    if isinstance(said, dict):
        asked = _count(said, "prompt_tokens", "input_tokens")
        answered = _count(said, "completion_tokens", "output_tokens")
        if asked is not None or answered is not None:
            return Usage(asked or 0, answered or 0)
    length = 0 if answer is None else sum(len(text) for text in _texts(answer))
    return Usage(sent // CHARACTERS_PER_TOKEN, length // CHARACTERS_PER_TOKEN, estimated=True)


def _count(said: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = said.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None


def _texts(answer: dict[str, Any]) -> list[str]:
    found: list[str] = []
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            found.append(content)
    return found


def tokens_of(body: dict[str, Any], length: int) -> float:
    """What a call will cost in tokens, as far as that can be known before."""
    most = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    answer = most if isinstance(most, int) and not isinstance(most, bool) else 0
    return float(max(1, length // CHARACTERS_PER_TOKEN + max(0, min(answer, 1_000_000))))


def cost_nano(channel: Channel, usage: Usage, discount: float) -> int:
    price = channel.price
    thousands = (
        usage.input_tokens * price.input_per_1k + usage.output_tokens * price.output_per_1k
    ) / 1000
    return min(round(thousands * (1.0 - discount) * NANO), MOST_NANO)


def bill_of(
    id: str, channel: Channel, usage: Usage, *, kind: str, tenant: str, endpoint: str, now: float,
    job: int | None = None, batch: str | None = None,
) -> Bill:  # fmt: skip
    """At the price of this moment."""
    discount = 0.0 if kind == ONLINE else channel.batch_discount
    price = channel.price
    return Bill(
        id, now, tenant, channel.code, channel.model, kind, endpoint, job, batch,
        usage.input_tokens, usage.output_tokens, int(usage.estimated), price.input_per_1k,
        price.output_per_1k, discount, cost_nano(channel, usage, discount), price.currency,
    )  # fmt: skip


class Billing:
    def __init__(self) -> None:
        self.brain: Brain  # from the moment that an engine is about to start
        self.charged: list[Callable[[Bill, float], None]] = []  # who hears of each, in the turn
        self._tokens: dict[tuple[str, ...], int] = {}
        self._costs: dict[tuple[str, ...], int] = {}

    def charge(self, bill: Bill, now: float) -> None:
        """In the turn that ends the call."""
        self.brain.write(ADD_BILL, bill)
        for hear in self.charged:
            hear(bill, now)
        for way, tokens in (("input", bill.input_tokens), ("output", bill.output_tokens)):
            key = (bill.channel, bill.kind, way)
            self._tokens[key] = self._tokens.get(key, 0) + tokens
        key = (bill.channel, bill.kind, bill.currency)
        self._costs[key] = self._costs.get(key, 0) + bill.cost_nano

    def counts(self) -> list[Counts]:
        """Since the start; what was spent since ever is in the table."""
        costs = {key: nano / NANO for key, nano in self._costs.copy().items()}
        return [
            Counts("llm_tokens", "Tokens that were billed.", ("channel", "kind", "direction"),
                   self._tokens.copy()),
            Counts("llm_cost", "What calls have cost.", ("channel", "kind", "currency"), costs),
        ]  # fmt: skip
