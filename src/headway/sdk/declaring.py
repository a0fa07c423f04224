"""From what a program writes to the rules of the core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core import RetryPolicy
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY
from headway.errors import BadJob
from headway.outcomes import Duration, seconds
from headway.remote.address import is_server


def retry_policy(
    name: str,
    timeout: Duration | None,
    retries: int | None,
    delay: Duration | None,
    growth: float | None,
) -> RetryPolicy:
    """The defaults of the type, with what was said changed."""
    changes: dict[str, Any] = {
        "timeout_s": None if timeout is None else seconds(timeout),
        "retries": retries,
        "delay_s": None if delay is None else seconds(delay),
        "growth": growth,
    }
    said = {key: value for key, value in changes.items() if value is not None}
    policy = DEFAULT_POLICIES.get(name, DEFAULT_POLICY)
    # The cap is for delays that grow; it does not shorten one that was asked for.
    said["max_delay_s"] = max(policy.max_delay_s, said.get("delay_s", 0.0))
    return replace(policy, **said)


def check_executor(executor: str, url: str) -> None:
    """Celery needs a server between the store and the fleet."""
    if executor not in ("headway", "celery"):
        raise BadJob(f'executor is "headway" or "celery", not {executor!r}')
    if executor == "celery" and not is_server(url):
        raise BadJob(
            'executor="celery" needs a server, which lets jobs go and hands them to the broker; '
            'write App("http://host:8000", …), and start it with `headway serve '
            "--celery-broker URL`"
        )
