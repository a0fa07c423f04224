"""kill -9 of a real server in the middle of a batch: no line is lost, none is there twice, and no
answer that was seen is billed twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from openai import OpenAI

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.batch_kit import answers, chats, client_of, counts, names, over, started
from tests.contract.kit import Api
from tests.hands.kit import eventually
from tests.servers import NewServer, Server

AT_ONCE = 20


@pytest.fixture
def upstream() -> Iterator[LlmUpstream]:
    with LlmUpstream(latency_ms=20, jitter_ms=10) as running:
        yield running


def channel_to(upstream: LlmUpstream) -> str:
    """A settings file."""
    return (
        f'[channel.fast]\nmodel = "m1"\nbase_url = "{upstream.url}"\napi_key = "sk-test-1"\n'
        f"rpm = 6000000\nmax_concurrency = {AT_ONCE}\n"
    )


def all_bills(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = 1
    while some := api.get("/api/costs/bills", size=200, page=page)["items"]:
        found += some
        page += 1
    return found


def killed_in_the_middle(
    server: Server, upstream: LlmUpstream, client: OpenAI, many: int, kills: list[int]
) -> None:
    """`kills`: each time when so many lines are answered."""
    batch = started(client, chats("m1", many))
    for answered in kills:
        eventually(lambda limit=answered: counts(client.batches.retrieve(batch.id))[1] >= limit)
        server.kill()
        server.start()
        assert client.batches.retrieve(batch.id).status == "in_progress"
    done = over(client, batch, within_s=60)
    assert done.status == "completed"
    assert counts(done) == (many, many, 0)
    assert answers(client, done) == {name: name for name in names(many)}
    assert list(answers(client, done)) == names(many)

    with Api(server.url) as api:
        bills = all_bills(api)
    assert Counter(bill["job"] for bill in bills).most_common(1)[0][1] == 1
    assert len(bills) == many
    given = upstream.stats()["answered"]
    # Of more answers nobody knows than were on their way when it was killed.
    assert many <= given <= many + AT_ONCE * len(kills)
    marks = defaultdict(set)
    for call in upstream.calls():
        marks[call["asked"]].add(call["idempotency_key"])
    assert {len(each) for each in marks.values()} == {1}, "a call was made again as another one"


def test_a_batch_outlives_its_server(new_server: NewServer, upstream: LlmUpstream) -> None:
    server = new_server(file=channel_to(upstream))
    with client_of(server.url) as client:
        killed_in_the_middle(server, upstream, client, 400, [100])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_of_2000_lines_outlives_several_servers(
    new_server: NewServer, upstream: LlmUpstream, seed: int
) -> None:
    kills = sorted(Random(seed).sample(range(1_900), 5))
    server = new_server(file=channel_to(upstream))
    with client_of(server.url) as client:
        killed_in_the_middle(server, upstream, client, 2_000, kills)
