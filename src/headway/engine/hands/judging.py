"""From what a handler returned or raised to the outcome of its attempt."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from typing import Any

from headway.core import Kind, Outcome
from headway.core.classify import (
    classify_exception,
    classify_status,
    outcome_of,
)
from headway.engine.hands.context import RunningJob, Stopped
from headway.engine.json_text import json_text
from headway.errors import PayloadNoLongerFits
from headway.outcomes import Verdict, headers_of, rates_in, with_rates

Judged = tuple[Outcome, str | None]


def judge_value(job: RunningJob, value: Any, limit: int, now: float) -> Judged:
    outcome, result = _value(value, limit)
    said = rates_in(value.headers, now) if isinstance(value, Verdict) else None
    return with_rates(outcome, said or job.rates), result


def judge_error(job: RunningJob, error: BaseException, now: float) -> Outcome:
    headers = error.headers if isinstance(error, Verdict) else headers_of(error)
    said = rates_in(headers, now)
    told_s = None if said is None else said.retry_after_s
    return with_rates(_error(job, error, told_s), said or job.rates)


def _value(value: Any, limit: int) -> Judged:
    if value is None:
        return Outcome.ok(), None
    if isinstance(value, Verdict):
        return value.outcome(), None
    try:
        text = json_text(value)
    except (TypeError, ValueError, OverflowError) as error:
        why = f"the job did its work, but its result is no JSON: {error}"
        return Outcome.failed(why, fatal=True), None
    if len(text) > limit:
        why = f"the result has {len(text)} characters, and {limit} are allowed; store it elsewhere"
        return Outcome.failed(why, fatal=True), None
    return Outcome.ok(), text


def _error(job: RunningJob, error: BaseException, told_s: float | None) -> Outcome:
    """`told_s`: the Retry-After of the answer that an HTTP client's exception carries."""
    if job.stop is not None and isinstance(error, asyncio.CancelledError | Stopped):
        return stopped(job)
    if isinstance(error, Verdict):
        return error.outcome()
    if isinstance(error, asyncio.CancelledError):
        return Outcome.failed("the handler was cancelled from within")
    if isinstance(error, PayloadNoLongerFits):
        return Outcome.failed(str(error), fatal=True)  # nor will it the next time
    job.log("".join(traceback.format_exception(error, limit=-20)), level="error")
    answer = classify_exception(error, types=job.work.type.meanings)
    if told_s is not None and answer.retry_after_s is None:
        if answer.status is not None and answer == classify_status(answer.status):
            answer = classify_status(answer.status, retry_after_s=told_s)
        else:
            answer = replace(answer, retry_after_s=told_s)
    outcome = outcome_of(answer, error=describe(error))
    return outcome if outcome.kind is Kind.PUSHBACK else replace(outcome, retry_after_s=None)


def stopped(job: RunningJob) -> Outcome:
    """The work has ended because it was asked to."""
    match job.stop:
        case "timeout":
            why = f"it took longer than {job.work.timeout_s:g} s and was stopped"
            return Outcome.failed(why, upstream_fault=True)
        case "shutdown" | "pause":  # a pause that was taken back meanwhile: it just runs again
            return Outcome.returned()
        case _:
            return Outcome.cancelled()


def describe(error: BaseException) -> str:
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
