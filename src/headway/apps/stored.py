"""What the applications keep in a store: their migrations, and the columns with sealed secrets. For
those who look at a store without running anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.store.installing import Migration
from headway.store.sealed import Sealed


def migrations() -> Mapping[str, Sequence[Migration]]:
    from headway.apps.alerts import tables as alerts  # noqa: PLC0415 - most commands need none
    from headway.apps.channels import tables as channels  # noqa: PLC0415
    from headway.apps.feeds import tables as feeds  # noqa: PLC0415
    from headway.apps.history import tables as history  # noqa: PLC0415
    from headway.apps.media import tables as media  # noqa: PLC0415

    modules = (channels, feeds, media, history, alerts)
    return {each.APP: each.MIGRATIONS for each in modules}


def sealed() -> tuple[Sealed, ...]:
    """All columns with secrets."""
    from headway.apps.channels.channel import about_key  # noqa: PLC0415
    from headway.apps.channels.queue.callbacks import about_secret  # noqa: PLC0415
    from headway.apps.media.accounts.register import about_cookies  # noqa: PLC0415

    return (
        Sealed("channels", "llm_channels", "sealed_key", "code", about_key),
        Sealed("channels", "llm_callback_secrets", "sealed", "tenant", about_secret),
        Sealed("channels", "llm_callback_secrets", "sealed_before", "tenant", about_secret),
        Sealed("media", "media_accounts", "sealed", "id", about_cookies, "bigint"),
    )
