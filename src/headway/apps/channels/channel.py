"""What a channel is: one model behind one key at one provider."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from headway.engine.settings import LEAST_RATE

CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NANO = 1_000_000_000  # money is counted in billionths of its currency


class QueueMode(StrEnum):
    """Who may use a channel besides online calls, which always may."""

    NONE = "none"  # nobody
    PULL = "pull"  # queued work
    ROUTE = "route"  # online calls that find it closed wait in line by themselves
    BOTH = "both"  # both of these


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    input_per_1k: float = 0.0
    output_per_1k: float = 0.0
    currency: str = "USD"

    def check(self) -> None:
        for name in ("input_per_1k", "output_per_1k"):
            value = getattr(self, name)
            if not 0 <= value < 1e9:
                raise ValueError(f"price.{name} is an amount of 0 or more, not {value!r}")
        if not re.fullmatch(r"[A-Z]{3}", self.currency):
            raise ValueError(f"price.currency is three capitals such as USD, not {self.currency!r}")


class Channel(msgspec.Struct, frozen=True, omit_defaults=True):
    """All but its key, which nobody reads again."""

    code: str
    model: str
    base_url: str
    upstream_model: str | None = None  # what the provider calls it, if that differs
    queue_mode: QueueMode = QueueMode.PULL
    price: Price = Price()
    batch_discount: float = 0.0  # the share that queued calls cost less
    max_concurrency: int | None = None
    max_concurrency_per_tenant: int | None = None
    rpm: float | None = None  # as documented: learning starts there and never goes above
    tpm: float | None = None
    remaining_threshold: float = 0.0
    timeout_s: float = 600.0
    enabled: bool = True

    @property
    def pulls(self) -> bool:
        return self.enabled and self.queue_mode in (QueueMode.PULL, QueueMode.BOTH)

    @property
    def lines_up(self) -> bool:
        """Whether an online call that finds it closed waits without being asked to."""
        return self.queue_mode in (QueueMode.ROUTE, QueueMode.BOTH)

    @property
    def name_upstream(self) -> str:
        """What its provider calls the model."""
        return self.upstream_model or self.model

    def check(self) -> None:
        """ValueError says what is wrong."""
        if not CODE.fullmatch(self.code):
            raise ValueError(
                "code has letters, digits and . _ - only, and begins with a letter or digit; "
                f"not {self.code!r}"
            )
        if not self.model or len(self.model) > 200 or not self.model.isprintable():
            raise ValueError(f"model is a name of 1 to 200 characters, not {self.model!r}")
        parts = urlsplit(self.base_url)
        try:
            place = parts.hostname if parts.port != 0 else None
        except ValueError:  # that is no port
            place = None
        if parts.scheme not in ("http", "https") or not place:
            raise ValueError(
                f"base_url is an http or https address such as https://api.openai.com/v1, "
                f"not {self.base_url!r}"
            )
        if parts.username is not None or "?" in self.base_url or "#" in self.base_url:
            raise ValueError("base_url has no user, query or fragment; the key goes into api_key")
        self.price.check()
        if not 0 <= self.batch_discount <= 1:
            raise ValueError(f"batch_discount is a share from 0 to 1, not {self.batch_discount!r}")
        if not 0 <= self.remaining_threshold < 1:
            raise ValueError(
                f"remaining_threshold is a share from 0 to below 1, not {self.remaining_threshold}"
            )
        if not 1 <= self.timeout_s <= 86_400:
            raise ValueError(f"timeout_s is from 1 second to a day, not {self.timeout_s!r}")
        for name in ("max_concurrency", "max_concurrency_per_tenant", "rpm", "tpm"):
            value = getattr(self, name)
            if value is not None and not LEAST_RATE <= value < 1e9:
                raise ValueError(
                    f"{name} is at least {LEAST_RATE}, or null for no limit, not {value!r}"
                )

    def upstream_settings(self) -> dict[str, Any]:
        """What is declared for the upstream of this name. All fields, so that what was taken back
        does not stay.
        """
        learn: dict[str, Any] = {"remaining_threshold": self.remaining_threshold}
        if self.rpm is not None:
            learn |= {"rpm": self.rpm, "max_rpm": self.rpm}
        if self.tpm is not None:
            learn |= {"tpm": self.tpm}
        if (
            self.max_concurrency is not None
        ):  # known to the learner, it keeps places for online calls
            learn |= {"concurrency": self.max_concurrency, "max_concurrency": self.max_concurrency}
        per_tenant = self.max_concurrency_per_tenant
        return {
            "limit": self.max_concurrency,
            "learn": learn,
            "tenant": None if per_tenant is None else {"limit": per_tenant},
        }


def about_key(code: str) -> str:
    """What the key of a channel is sealed for."""
    return f"channel:{code}"


def route_of(model: str) -> str:
    """The name that jobs wait at, which leads to all channels of a model."""
    return f"model:{model}"
