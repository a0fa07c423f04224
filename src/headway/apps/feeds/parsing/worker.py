"""One parsing process: `python -m headway.apps.feeds.parsing.worker PARENT CPU_S MEMORY_BYTES`.

It takes wishes from its standard input until that ends, and answers on its standard output. It
holds itself to its limits; the server kills it if it does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from typing import BinaryIO

from headway.apps.feeds.discovery import feeds_named_in
from headway.apps.feeds.parsing.errors import FeedUnreadable, ParserOutOfMemory
from headway.apps.feeds.parsing.messages import (
    LENGTH,
    OUT_OF_MEMORY,
    READY,
    Answer,
    Discovered,
    Parse,
    Parsed,
    Refused,
    Wish,
    framed,
    wish_in,
)
from headway.apps.feeds.parsing.reading import read

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, cpu_s, memory_bytes = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    _end_with(parent)
    wishes = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the answers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    answers.write(READY)
    answers.flush()
    while (wish := _next(wishes)) is not None:
        signal.setitimer(signal.ITIMER_PROF, cpu_s)  # and then it is the end of this process
        answer = _answer(wish)
        del wish
        answers.write(framed(answer))
        answers.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
        if isinstance(answer, Refused) and answer.kind == ParserOutOfMemory.kind:
            return  # who knows what else went missing; a new one takes over


def _answer(wish: Wish) -> Answer:
    try:
        if isinstance(wish, Parse):
            return Parsed(read(wish.document, url=wish.url, content_type=wish.content_type))
        return Discovered(feeds_named_in(wish.page, wish.url, wish.content_type))
    except FeedUnreadable as error:
        return Refused(error.kind, str(error))
    except MemoryError:
        return Refused(
            ParserOutOfMemory.kind,
            "Reading this takes more memory than allowed. Ask for a smaller feed.",
        )
    except RecursionError:
        return Refused(FeedUnreadable.kind, "The document is nested too deeply to be read.")
    except Exception as error:  # a parser that trips over one document goes on with the next
        name = type(error).__name__
        return Refused(FeedUnreadable.kind, f"The parser failed on this document ({name}).")


def _next(wishes: BinaryIO) -> Wish | None:
    header = wishes.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    body = wishes.read(length)
    return wish_in(body) if len(body) == length else None


def _end_with(parent: int) -> None:
    """The end of the input ends an idle worker; only the kernel can end one that is busy."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux knows it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _limit(what: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # where there is no such limit, or a lower one
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
