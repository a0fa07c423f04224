"""What a target is: something that reads data from outside, and all that it may do about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

LONGEST_S = 2.0  # of the processor, for one input of at most `MAX_BYTES`
MAX_BYTES = 4_096


class TooSlow(AssertionError):
    """One input took longer than any of its size may."""


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    run: Callable[[bytes], object]
    allowed: tuple[type[BaseException], ...] = ()  # what may be raised; all else is a finding
    seeds: tuple[bytes, ...] = (b"",)
    words: tuple[bytes, ...] = ()  # that its language is made of

    def try_out(self, data: bytes) -> None:
        """Raises what it must not."""
        began = time.thread_time()
        with suppress(*self.allowed):
            self.run(data)
        took_s = time.thread_time() - began
        if took_s > LONGEST_S:
            raise TooSlow(f"{self.name} took {took_s:.1f} s for {len(data)} bytes")


def text_of(data: bytes) -> str:
    """Text as it may come: also half characters, which JSON can say, and any byte of a header."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def in_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(text_of(data))


def headers_of(data: bytes) -> dict[str, str]:
    """`name: value` on each line."""
    pairs = (line.partition(":") for line in text_of(data).split("\n"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def place_of(trace: TracebackType | None) -> str:
    """The last line of ours that an error came through: the same for all inputs that find it."""
    place = "?"
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/headway/" in code.co_filename or "/tests/fuzz/" in code.co_filename:
            place = f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}"
        trace = trace.tb_next
    return place
