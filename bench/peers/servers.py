"""The servers that the chosen products need, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import surroundings
from bench.peers.postgres_server import PostgresServer, postgres_server
from bench.peers.products import POSTGRES, REDIS, Product
from bench.peers.redis_server import RedisServer, redis_server


@dataclass(frozen=True, slots=True)
class Servers:
    redis: RedisServer | None = None
    postgres: PostgresServer | None = None

    def pids(self) -> tuple[int, ...]:
        return tuple(each.pid for each in (self.redis, self.postgres) if each is not None)

    def environment(self) -> dict[str, str]:
        """What adapters are told: see `surroundings`."""
        return {
            surroundings.REDIS_URL: self.redis.url if self.redis else "",
            surroundings.POSTGRES_URL: self.postgres.url if self.postgres else "",
        }

    def versions(self) -> dict[str, str]:
        named = {"redis-server": self.redis, "postgres-server": self.postgres}
        return {name: each.version for name, each in named.items() if each is not None}


@contextmanager
def servers_for(products: Iterable[Product], directory: Path) -> Iterator[Servers]:
    stores = {product.store for product in products}
    with ExitStack() as ends:
        redis = ends.enter_context(redis_server(directory)) if REDIS in stores else None
        postgres = ends.enter_context(postgres_server(directory)) if POSTGRES in stores else None
        yield Servers(redis, postgres)
