"""`python -m headway.simulation`: a question on stdin, its answer on stdout, both as JSON. A server
starts it for each question, so that it can neither hold its engine up nor fill its memory.
"""

from __future__ import annotations

import contextlib
import os
import sys
from time import monotonic

import msgspec

from headway.simulation.asked import said

MEMORY_BYTES = 2 * 1024**3
CPU_S = 120


def keep_small() -> None:
    """Whatever is asked: it yields to everybody else, and ends before it takes too much."""
    os.nice(3)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def main() -> None:
    keep_small()
    question = msgspec.json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(said(question, monotonic)))


if __name__ == "__main__":
    main()
