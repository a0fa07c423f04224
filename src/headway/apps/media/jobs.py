"""The jobs of the archive, as they are put into the queue, whoever asks for them.

What they are called, which lane they take and by what they join each other is what clients of
`/api/requests` know: one duplicate of an active job joins it, and all of one subscription stand in
one line.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE, SUBSCRIPTION
from headway.apps.media.model import Subscription
from headway.apps.media.presets import site_of
from headway.core import RetryPolicy
from headway.engine.tickets import Spec, names_text, spec_text
from headway.store.records import NewJob, Unique

COUNT, LOOK, LIST, DOWNLOAD = "expected_total", "parse", "list_fetch", "download"
TYPES = (COUNT, LOOK, LIST, DOWNLOAD)
PREFIX = "media."  # of what nobody may enqueue but us
REFRESH = "media.refresh"  # a look by the clock
START = "media.start"  # downloads of what was found earlier
LANE = "archive"  # of those two, which call nobody
YT_DLP, LIBRARY = "yt-dlp", "library"  # tools
ACCOUNT = "account:"  # tool, followed by the name of a site

BY_HAND, BY_CLOCK = 2, 5  # priorities
ITEM = "item"  # the label of a download that says what is downloaded
SPARE_S = 60.0  # beyond the time that a program has


def rules(timeout_s: float, retries: int, delay_s: float, growth: float = 1.0) -> RetryPolicy:
    """A site that pushes back may take days, and a server may be restarted often."""
    return RetryPolicy(
        timeout_s=timeout_s + SPARE_S, retries=retries, delay_s=delay_s, growth=growth,
        max_lost=20, max_pushbacks=1_000, max_pushed_back_s=7 * 86_400.0,
    )  # fmt: skip


def key_of(subscription: int) -> str:
    """Of the mutex of a subscription."""
    return f"{SUBSCRIPTION}{subscription}"


def subscription_of(key: str | None) -> int:
    """0: it is none of ours."""
    text = (key or "").removeprefix(SUBSCRIPTION)
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= 15 else 0


def new_request(
    type: str,
    url: str,
    now: float,
    *,
    subscription: Subscription | None = None,
    tenant: str = "",
    cookie: bool = False,
    ua_profile: str | None = None,
    priority: int = BY_CLOCK,
    max_attempts: int | None = None,
    item: int | None = None,
    **more: Any,
) -> NewJob:
    """`more` are further arguments of the handler."""
    cookie = cookie or type == DOWNLOAD
    number = None if subscription is None else subscription.id
    tenant = tenant if subscription is None else subscription.tenant
    site = site_of(url) if subscription is None else subscription.site
    about = {"url": url}
    if ua_profile is not None and not cookie:
        about["ua_profile"] = ua_profile
    args = {"subscription_id": number, "url": url, "requires_cookie": cookie,
            "ua_profile": about.get("ua_profile"), **more}  # fmt: skip
    spec = Spec(about=about, max_attempts=max_attempts)
    if item is not None:
        spec.labels = {ITEM: str(item)}
        args["item"] = item
    return NewJob(
        type, msgspec.json.encode(args).decode(), created_at=now,
        lane=COOKIE_LANE if cookie else NO_COOKIE_LANE, tenant=tenant,
        key=None if number is None else key_of(number), upstreams=names_text((site,)),
        priority=priority, spec=spec_text(spec),
        unique=Unique(unique_key(type, tenant, number, url)),
    )  # fmt: skip


def unique_key(type: str, tenant: str, subscription: int | None, url: str) -> str:
    """Requests for the same thing are one. No tenant can say what another one says."""
    key = f"{type}:{subscription}:{sha256(url.encode()).hexdigest()}"
    return f"tenant {len(tenant)}:{tenant}:{key}" if tenant else key


def internal(type: str, subscription: Subscription, now: float) -> NewJob:
    """A job that calls nobody, one at a time for each subscription."""
    key = f"{type}:{subscription.id}"
    return NewJob(
        type, msgspec.json.encode({"subscription": subscription.id}).decode(), created_at=now,
        lane=LANE, tenant=subscription.tenant, key=key, unique=Unique(key),
    )  # fmt: skip
