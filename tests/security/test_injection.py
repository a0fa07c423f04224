"""Text of others stays text: it is no part of a statement, of a header, or of a limit."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx2
import pytest

from headway.core import Outcome, Permit, Ticket, Traffic
from headway.core.classify import MAX_RETRY_AFTER_S, parse_retry_after
from headway.core.rate_headers import parse_rate_headers
from headway.net.outbound import Allowed, guarded_client
from headway.store.filtering import where
from headway.store.postgres.reading import Reader as PostgresReader
from headway.store.records import Query
from headway.store.sqlite.reading import Reader as SqliteReader
from tests.contract.kit import new_name
from tests.core.kit import core_with
from tests.hands.kit import eventually
from tests.net.kit import says, site
from tests.security.kit import Guarded

HOSTILE = (
    "x'; drop table jobs; --", '" or 1=1 --', "') union select hash from tokens --", "%_\\", "a?b",
    "$1", "{}", "%s", "'||(select 1)||'",
)  # fmt: skip
TEXTS = ("type", "lane", "tenant", "key", "upstream", "schedule", "error")
NOW = 1_800_000_000.0


# ---------------------------------------------------------------------- statements


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("reader", [SqliteReader, PostgresReader])
def test_no_text_is_ever_part_of_a_statement(reader: type, text: str) -> None:
    query = replace(Query(), **dict.fromkeys(TEXTS, text), labels=((text, text),))
    condition = where(query, reader.WORDS)

    assert condition is not None
    words, values = condition
    assert text not in words
    assert words.count("?") == len(values)


@pytest.mark.parametrize("text", HOSTILE)
def test_searches_and_orders_leave_the_store_as_it_was(guarded: Guarded, text: str) -> None:
    with guarded.as_("alice") as alice:
        job = alice.enqueue(new_name())
        before = eventually(lambda: (seen := alice.get(f"/api/jobs/{job}"))["wait_reason"] and seen)
        for path, names in (
            ("/api/jobs", ("q", "type", "lane", "key", "upstream", "status")),
            ("/api/articles", ("q", "feed", "folder", "order", "before", "cursor")),
            ("/api/requests", ("q", "status")),
        ):
            for name in names:
                quoted = text.replace('"', '\\"')
                for said in (text, f'error:"{quoted}"'):
                    answer = alice.send("GET", path, params={name: said})
                    assert answer.status_code < 500, (path, name)
        assert alice.get(f"/api/jobs/{job}") == before


# ---------------------------------------------------------------------- headers


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\x00b", "a\r"])
@pytest.mark.parametrize("name", ["authorization", "idempotency-key", "webhook-id", "user-agent"])
def test_no_value_adds_a_header_to_a_request_of_ours(name: str, value: str) -> None:
    async def send() -> list[str]:
        async with site(says()) as there:
            allowed = Allowed([f"127.0.0.1:{there.port}"])
            async with guarded_client(allowed) as client:
                with pytest.raises(httpx2.LocalProtocolError):
                    await client.post(f"http://127.0.0.1:{there.port}/", headers={name: value})
            return there.heads

    assert not any("evil" in head.lower() for head in asyncio.run(send()))


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize("said", ["99999999999", "1e308", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_no_upstream_closes_itself_for_longer_than_a_week(said: str) -> None:
    told_s = parse_retry_after(said, NOW)
    assert told_s is None or told_s <= MAX_RETRY_AFTER_S
    rates = parse_rate_headers({"retry-after": said}, NOW)
    assert rates is None or rates.retry_after_s == told_s

    core = core_with()
    online = Ticket("call", upstreams=("x",), traffic=Traffic.ONLINE)
    permit = core.call(online, NOW)
    assert isinstance(permit, Permit)
    core.finish("call", permit.fence, Outcome.pushback(retry_after_s=told_s), NOW)
    core.submit(Ticket("job", upstreams=("x",)), NOW)
    assert core.admit(NOW + MAX_RETRY_AFTER_S + 1.0), "a week is over"
