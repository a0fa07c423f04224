"""One call from its question to the end of its answer: the script, the limits, time, the words."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Protocol

from headway.testing.llm_upstream import shapes
from headway.testing.llm_upstream.calls import LONGEST_ASKED, Call, Log
from headway.testing.llm_upstream.limits import Limiter, Refusal
from headway.testing.llm_upstream.settings import Settings, Step, changed

AS_USUAL = Step()


class Wire(Protocol):
    """The connection that a call came on."""

    def send(self, status: int, extra: str, body: bytes, *, cut: bool = False) -> None: ...
    def start_stream(self, extra: str) -> None: ...
    def send_chunk(self, data: bytes) -> None: ...
    def end_stream(self) -> None: ...
    def hang_up(self) -> None: ...
    def next_request(self) -> None: ...


class Upstream:
    """The settings and everything that outlives a call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log = Log()
        self._limiters: dict[str, Limiter] = {}
        self._ids = map(f"{secrets.token_hex(4)}-{{}}".format, count(1))
        self._random = Random(0)
        self._plan(settings.script)

    def change(self, changes: dict[str, object]) -> None:
        """All of it or, with a ValueError, nothing."""
        self.settings = changed(self.settings, changes)
        now = time.time()
        for limiter in self._limiters.values():
            limiter.change(self.settings, now)
        if "script" in changes:
            self._plan(self.settings.script)

    def reset(self) -> None:
        """Forget the calls, what they used of the limits, bans, and the rest of the script."""
        self.log = Log()
        self._plan(())
        now = time.time()
        for limiter in self._limiters.values():
            limiter.forget(now)

    def stats(self) -> dict[str, object]:
        left = sum(self._times)
        return {**self.log.stats(), "script_left": left, "cpu_s": time.process_time()}

    def limiter(self, key: str | None) -> Limiter:
        whose = (key or "") if self.settings.per_key else ""
        found = self._limiters.get(whose)
        if found is None:
            found = self._limiters[whose] = Limiter(self.settings, time.time())
        return found

    def call(self, endpoint: str, key: str | None, headers: dict[bytes, str]) -> Call:
        return self.log.begin(next(self._ids), time.time(), endpoint, key, headers)

    def next_step(self) -> Step:
        if not self._script:
            return AS_USUAL
        step = self._script[0]
        self._times[0] -= 1
        if not self._times[0]:
            self._script.popleft()
            self._times.popleft()
        return step

    def takes_s(self, in_flight: int) -> float:
        settings = self.settings
        takes_ms = settings.latency_ms + settings.jitter_ms * self._random.uniform(-1.0, 1.0)
        if settings.slow_above is not None:
            takes_ms *= max(1.0, in_flight / settings.slow_above)
        return max(0.0, takes_ms / 1000)

    def _plan(self, script: tuple[Step, ...]) -> None:
        self._script = deque(script)
        self._times = deque(step.times for step in script)  # that are left of each


class Exchange:
    """A call at work. Timers, not tasks: there may be thousands of them."""

    def __init__(self, upstream: Upstream, wire: Wire, call: Call) -> None:
        self._upstream = upstream
        self._wire = wire
        self._call = call
        self._limiter: Limiter | None = None  # while it is in flight there
        self._timer: asyncio.TimerHandle | None = None
        self._log = upstream.log  # a reset begins another
        self._extra = f"x-request-id: req_{call.id}\r\n"

    def begin(self, path: str, body: bytes) -> None:
        upstream, call = self._upstream, self._call
        settings = upstream.settings
        if settings.keys and call.key not in settings.keys:
            return self._say(401, shapes.WRONG_KEY)
        limiter = upstream.limiter(call.key)
        try:
            question = shapes.read_question(path, body, settings)
        except shapes.BadQuestion as bad:
            self._describe(limiter)
            return self._say(bad.status, bad.body)
        call.model, call.stream = question.model, question.stream
        call.asked = question.asked[:LONGEST_ASKED]
        step = upstream.next_step()
        if step.drop:
            return self._after(step.hang_s, self._drop)
        if step.is_refusal:
            self._describe(limiter)
            return self._after(step.hang_s, lambda: self._follow(step, question.model))
        if limiter.banned_s(call.at) > 0:
            call.refused_by = "ban"
            return self._say(403, shapes.BANNED)
        refusal = limiter.refuses(call.at, question.tokens)
        if refusal is not None:
            return self._refuse(limiter, refusal, question.model)
        limiter.enter(call.at, question.tokens)
        self._limiter = limiter
        self._describe(limiter)
        answer = self._stream if question.stream else self._answer
        takes_s = step.hang_s + upstream.takes_s(limiter.in_flight)
        self._after(takes_s, lambda: answer(question, step.cut))

    def lost(self) -> None:
        """The client has gone away."""
        self._call.broken_off = True
        self._end()

    # ------------------------------------------------------------------ refusals

    def _refuse(self, limiter: Limiter, refusal: Refusal, model: str) -> None:
        settings = self._upstream.settings
        limiter.refused(self._call.at)
        self._call.refused_by = refusal.by
        self._describe(limiter)
        if settings.retry_after == "whole":
            self._extra += f"retry-after: {max(1, math.ceil(refusal.wait_s))}\r\n"
        elif settings.retry_after == "exact":
            self._extra += f"retry-after: {max(0.001, refusal.wait_s):.3f}\r\n"
        body = shapes.refusal_body(model, refusal)
        self._after(settings.refusal_ms / 1000, lambda: self._say(429, body))

    def _follow(self, step: Step, model: str) -> None:
        assert step.status is not None
        self._call.refused_by = "script"
        if step.retry_after is not None:
            self._extra += f"retry-after: {step.retry_after:g}\r\n"
        body = shapes.scripted_body(step.status, model, step.message)
        self._say(step.status, body, cut=step.cut)

    def _drop(self) -> None:
        self._call.cut = True
        self._wire.hang_up()
        self._end()

    # ------------------------------------------------------------------ answers

    def _answer(self, question: shapes.Question, cut: bool) -> None:
        call = self._call
        call.prompt_tokens = question.prompt_tokens
        call.completion_tokens = question.completion_tokens
        self._say(200, shapes.answer_body(question, call.id, call.at), cut=cut)

    def _stream(self, question: shapes.Question, cut: bool) -> None:
        call, settings = self._call, self._upstream.settings
        chunks = deque(shapes.chunks_of(question, settings.chunks, call.id, call.at))
        words = len(chunks) - 1 - question.include_usage
        never_sent = len(chunks) // 2 if cut else 0
        call.status, call.prompt_tokens = 200, question.prompt_tokens
        call.answered_at = time.time()
        self._wire.start_stream(self._extra)

        def send_next() -> None:
            while len(chunks) > never_sent:
                self._wire.send_chunk(chunks.popleft())
                call.chunks += 1
                share = min(1.0, call.chunks / words)
                call.completion_tokens = math.ceil(question.completion_tokens * share)
                # What follows the words comes with the last of them, as it does from providers.
                if call.chunks < words and settings.chunk_ms > 0:
                    return self._after(settings.chunk_ms / 1000, send_next)
            if cut:
                call.cut = True
                self._wire.hang_up()
            else:
                self._wire.send_chunk(shapes.DONE)
                self._wire.end_stream()
            self._end()

        send_next()

    # ------------------------------------------------------------------ the end

    def _say(self, status: int, body: bytes, *, cut: bool = False) -> None:
        self._call.status, self._call.cut = status, cut
        self._call.answered_at = time.time()
        self._wire.send(status, self._extra, body, cut=cut)
        self._end()

    def _describe(self, limiter: Limiter) -> None:
        """The rate-limit headers, as they are when the call comes in."""
        style = self._upstream.settings.headers
        if style != "none":
            now = self._call.at
            standings = limiter.requests(now), limiter.tokens(now)
            self._extra += shapes.rate_headers(style, *standings, now)

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        if seconds > 0:
            self._timer = asyncio.get_running_loop().call_later(seconds, then)
        else:
            then()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._limiter is not None:
            self._limiter.leave()
        self._log.end(self._call, time.time())
        self._wire.next_request()
