"""`headway serve`, with names below `.bench.test` that lead to loopback: a benchmark of many sites
needs many names, and no machine has them.

    python -m bench.feeds_server serve --port 0 --data DIR
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from headway.apps.feeds import visiting
from headway.apps.feeds.fetching import Fetcher
from headway.cli import main
from headway.net.outbound import look_up

OWN = ".bench.test"


async def resolve(host: str, port: int) -> Iterable[str]:
    return ["127.0.0.1"] if host.endswith(OWN) else await look_up(host, port)


if __name__ == "__main__":
    visiting.Fetcher = partial(Fetcher, resolve=resolve)  # type: ignore[misc,assignment]
    main()
