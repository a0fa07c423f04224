"""Signing messages to receivers in the way of the Standard Webhooks specification, so that its
libraries verify them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
SECRET_BYTES = 32
LEAST_BYTES = 24  # of a secret, as the specification has it


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def check_secret(secret: str) -> None:
    """ValueError: nobody could sign with this. It does not repeat it."""
    try:
        size = len(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except ValueError:
        size = 0
    if size < LEAST_BYTES:
        raise ValueError(
            f"a secret that signs is {PREFIX} and base64 of {LEAST_BYTES} bytes or more; make one "
            f'with `echo "{PREFIX}$(head -c {SECRET_BYTES} /dev/urandom | base64)"`'
        )


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """`v1,…` over what is sent."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def headers(secrets: Iterable[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Those of a message. With several secrets it is signed with each, with none it is not."""
    made = {
        "content-type": "application/json",
        "user-agent": "headway",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
    }
    signed = " ".join(signature(secret, id, timestamp, body) for secret in secrets)
    return {**made, "webhook-signature": signed} if signed else made
