"""Batches by the official client, against a provider on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from openai import OpenAI
from openai.types import Batch

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.kit import JSON, PATIENCE_S, Api, new_name
from tests.hands.kit import eventually

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
OVER = ("completed", "failed", "expired", "cancelled")
# What is documented of the provider, so that nothing has to be learned first.
QUICK = {"rpm": 6_000_000, "max_concurrency": 20}


@contextmanager
def client_of(url: str, token: str = "not-needed", **more: Any) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key=token, timeout=PATIENCE_S, max_retries=0,
                **more) as client:  # fmt: skip
        yield client


def model_at(api: Api, upstream: LlmUpstream, **more: Any) -> str:
    """A new model, with one channel."""
    model = new_name("model")
    said = {"code": new_name("channel"), "model": model, "base_url": upstream.url}
    api.post("/api/channels", {**said, **QUICK, **more}, 201)
    return model


def chat(model: str, custom_id: str, text: str | None = None, **more: Any) -> JSON:
    body = {"model": model, "messages": [{"role": "user", "content": text or custom_id}], **more}
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}


def chats(model: str, many: int) -> list[JSON]:
    return [chat(model, name) for name in names(many)]


def names(many: int) -> list[str]:
    return [f"line-{number}" for number in range(many)]


def uploaded(client: OpenAI, lines: Iterable[JSON | str]) -> str:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    content = "\n".join(texts).encode()
    return client.files.create(file=("in.jsonl", content), purpose="batch").id


def started(client: OpenAI, lines: Iterable[JSON | str], **more: Any) -> Batch:
    said: JSON = {"endpoint": CHAT, "completion_window": "24h", **more}
    return client.batches.create(input_file_id=uploaded(client, lines), **said)


def over(client: OpenAI, batch: Batch, within_s: float = PATIENCE_S) -> Batch:
    """When it has ended, however that was."""

    def look() -> Batch | None:
        seen = client.batches.retrieve(batch.id)
        return seen if seen.status in OVER else None

    found: Batch = eventually(look, within_s)
    return found


def lines_in(client: OpenAI, file: str | None) -> list[JSON]:
    if file is None:
        return []
    return [json.loads(line) for line in client.files.content(file).text.splitlines()]


def answers(client: OpenAI, batch: Batch) -> dict[str, str]:
    """What was answered to which custom_id, in the order of the file."""
    found = lines_in(client, batch.output_file_id)
    said = {
        line["custom_id"]: line["response"]["body"]["choices"][0]["message"]["content"]
        for line in found
    }
    assert len(said) == len(found), "a line is there twice"
    assert all(line["error"] is None for line in found)
    assert all(line["response"]["status_code"] == 200 for line in found)
    return said


def counts(batch: Batch) -> tuple[int, int, int]:
    assert batch.request_counts is not None
    found = batch.request_counts
    return found.total, found.completed, found.failed
