"""Run an upstream by hand: `python -m headway.testing.llm_upstream --rpm 60 --key sk-test`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import get_args

from headway.testing.llm_upstream.process import HOST
from headway.testing.llm_upstream.serving import serve
from headway.testing.llm_upstream.settings import (
    RetryAfter,
    Settings,
    Style,
    WindowKind,
    changed,
)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(":")]


def _ban(text: str) -> dict[str, float]:
    after, *seconds = text.split(":")
    return {"after": int(after)} | dict(
        zip(("within_s", "for_s"), map(float, seconds), strict=False)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headway.testing.llm_upstream",
        description="A server on loopback that speaks OpenAI's shapes and pushes back.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--port", type=int, default=0, help="0 (the default) takes a free one")
    add("--rpm", type=int, metavar="N", help="calls per window")
    add("--tpm", type=int, metavar="N", help="tokens per window")
    add("--window", choices=get_args(WindowKind), help="what kind of window")
    add("--window-s", type=float, metavar="S", help="its length (60)")
    add("--bucket", type=_numbers, metavar="RATE:BURST", help="calls per second, and at once")
    add("--concurrency", type=int, metavar="N", help="calls in flight")
    add("--per-key", action="store_true", help="each key has the limits for itself")
    add("--ban", type=_ban, metavar="N:M[:S]", help="N refusals in M seconds: 403 for S seconds")
    add("--headers", choices=get_args(Style), help="the style of rate-limit headers (openai)")
    add("--retry-after", choices=get_args(RetryAfter), help="what a refusal says (whole)")
    add("--latency-ms", type=float, metavar="MS", help="until the answer (50)")
    add("--jitter-ms", type=float, metavar="MS", help="more or less than that (10)")
    add("--slow-above", type=int, metavar="N", help="calls in flight that it answers in time")
    add("--refusal-ms", type=float, metavar="MS", help="until a refusal (0)")
    add("--chunks", type=int, metavar="N", help="of a stream; else one for each word")
    add("--chunk-ms", type=float, metavar="MS", help="between two chunks (10)")
    add("--answer-tokens", type=int, metavar="N", help="fill answers up to this")
    add("--dimensions", type=int, metavar="N", help="of embeddings (8)")
    add("--key", action="append", dest="keys", metavar="SECRET", help="the only keys it takes")
    add("--model", action="append", dest="models", metavar="NAME", help="the only models it has")
    add("--until-stdin-closes", action="store_true", help="end with whoever holds its stdin")
    return parser


def _listening(port: int) -> None:
    print(f"LLM upstream at http://{HOST}:{port}", flush=True)


def _end_with_stdin() -> None:
    """A parent that is killed closes it too, and can do nothing else."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    parser = _parser()
    given = vars(parser.parse_args())
    port = given.pop("port")
    if given.pop("until_stdin_closes", False):
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        settings = changed(Settings(), given)
    except ValueError as error:
        parser.error(str(error))
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - not on every system

        factory = uvloop.new_event_loop

    with asyncio.Runner(loop_factory=factory) as runner, contextlib.suppress(KeyboardInterrupt):
        runner.run(serve(settings, port, _listening))


if __name__ == "__main__":
    main()
