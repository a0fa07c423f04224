"""Channels in a world with a clock of its own: batches of days in a moment, and a provider that
does what the test says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headway import App
from headway.api.config import Config
from headway.apps.channels import Channels
from headway.apps.channels.batches.files import BATCH, KEPT_S, new_file_id
from headway.apps.channels.batches.life import StoredBatch, new_batch
from headway.apps.channels.calling import Answer
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import API
from headway.testing import World
from headway.testing.world import VirtualEngine
from tests.engine.kit import takes

CHAT = "/v1/chat/completions"
MODEL = "m1"
JSON = dict[str, Any]
Says = Callable[[str, int], Answer]  # to a text that is asked for the n-th time


def well(text: str, _time: int = 1) -> Answer:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    said = {"choices": [{"message": {"content": text}}], "usage": usage}
    return Answer(200, {"x-request-id": f"req-{text}"}, json.dumps(said).encode())


def refusal(status: int, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, b'{"error": {"message": "no"}}')


@dataclass
class Provider:
    """Stands for the HTTP client of queued calls."""

    world: ChannelsWorld
    says: Says = well
    takes_s: float = 1.0
    calls: list[tuple[float, str]] = field(default_factory=list)  # when, and what was asked
    marks: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)

    async def call(
        self, channel: Channel, key: str | None, endpoint: str, body: bytes, *, mark: str = ""
    ) -> Answer:
        text = json.loads(body)["messages"][0]["content"]
        self.calls.append((self.world.now, text))
        self.marks.append(mark)
        await takes(self.takes_s)
        self.answered[text] += 1
        return self.says(text, self.answered[text])

    def asked(self, beginning: str) -> list[float]:
        """When texts were asked that begin so."""
        return [at for at, text in self.calls if text.startswith(beginning)]


class ChannelsWorld(World):
    def __init__(self, app: App, **more: Any) -> None:
        super().__init__(app, **more)
        self.channels = Channels()
        self.provider = Provider(self)
        self._prepared = False

    def _start(self) -> VirtualEngine:
        channels = self.channels
        if not self._prepared:
            self._prepared = True
            channels.prepare(self.app, Config(data=self._directory or ""), None)
            channels.queued.caller = lambda: self.provider  # type: ignore
        engine = super()._start()
        engine.ask(channels.directory.settle)
        return engine

    # ------------------------------------------------------------------ what tests do

    def channel(self, at_once: int = 4, **more: Any) -> None:
        channel = Channel(
            "c1", MODEL, "http://127.0.0.1:1/v1", rpm=6e7, max_concurrency=at_once, **more
        )
        self.channels.batches.turn(partial(self.channels.directory.put, channel, None, API))

    def upload(self, text: str, tenant: str = "") -> str:
        writer = self.channels.files.writer(new_file_id(), tenant, "in.jsonl", BATCH, self.now)
        for start in range(0, len(text), 1_000):
            if writer.add(text[start : start + 1_000].encode()):
                writer.flush()
        file = writer.finish()._replace(expires_at=self.now + KEPT_S)
        self.channels.files.add(file)
        self.channels.batches.turn(self.channels.batches.tidy_tomorrow)
        return file.id

    def batch(
        self, lines: int | str, *, tenant: str = "", named: str = "line", window_s: float = 86_400
    ) -> str:
        """A batch that was just created: nothing of it has been read yet."""
        text = lines if isinstance(lines, str) else jsonl(lines, named)
        file = self.channels.files.get(self.upload(text, tenant), tenant)
        assert file is not None
        number = self.app.store.open_batch("", self.now, tenant)
        row = new_batch(number, file, CHAT, f"{window_s}s", window_s, None, self.now)
        self.channels.batches.turn(partial(self.channels.batches.create, row))
        return row.id

    def cancel(self, batch: str) -> JSON:
        row = self._row(batch)
        self.channels.batches.turn(partial(self.channels.batches.cancel, row.number))
        return self.seen(batch)

    def _row(self, batch: str) -> StoredBatch:
        row = self.channels.batches.get(batch, None)
        assert row is not None
        return row

    def seen(self, batch: str) -> JSON:
        """As a client sees it."""
        row = self._row(batch)
        return row.view(self.channels.batches.tally_of(row))

    def until(self, batch: str, *statuses: str, within_s: float = 100_000) -> JSON:
        """Let time pass until it is in one of these."""
        end = self.now + within_s
        while (seen := self.seen(batch))["status"] not in statuses:
            assert self.now < end, seen
            self.run_for(1)
        return seen

    def lines_of(self, file: str | None) -> list[JSON]:
        if file is None:
            return []
        text = "".join(self.channels.files.content(file))
        return [json.loads(line) for line in text.splitlines()]

    def answers(self, batch: str) -> list[str]:
        """The custom_ids in its output, in order; each with its own answer."""
        found = self.lines_of(self.seen(batch)["output_file_id"])
        for line in found:
            assert line["error"] is None
            assert line["response"]["status_code"] == 200
            content = line["response"]["body"]["choices"][0]["message"]["content"]
            assert content == line["custom_id"]
        return [line["custom_id"] for line in found]

    def faults(self, batch: str) -> dict[str, Any]:
        """What its error file says of which custom_id: a status, or a code."""
        found = self.lines_of(self.seen(batch)["error_file_id"])
        said = {
            line["custom_id"]: line["error"]["code"]
            if line["response"] is None
            else line["response"]["status_code"]
            for line in found
        }
        assert len(said) == len(found), "a line is there twice"
        return said

    def count(self, table: str, where: str = "1 = 1") -> int:
        return int(self.app.store.rows(f"select count(*) from {table} where {where}")[0][0])


def line(custom_id: str, **more: Any) -> JSON:
    """Its answer will be its name."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": custom_id}]}
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body, **more}


def names(many: int, named: str = "line") -> list[str]:
    return [f"{named}-{number}" for number in range(many)]


def jsonl(many: int, named: str = "line") -> str:
    return "".join(json.dumps(line(name)) + "\n" for name in names(many, named))


@contextmanager
def channels_world(**more: Any) -> Iterator[ChannelsWorld]:
    with ChannelsWorld(App(**more)) as world:
        yield world
