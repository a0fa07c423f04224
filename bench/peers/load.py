"""What others do on this machine meanwhile: their load distorts figures, so it is kept with them.

On Linux only; elsewhere nothing is known, and nothing is claimed.
"""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
QUIET = 0.12  # busy share of all CPUs below which the machine counts as quiet
SAMPLE_S = 0.2


@dataclass(frozen=True, slots=True)
class Ticks:
    total: int
    busy: int
    nice: int
    steal: int


def read_ticks() -> Ticks | None:
    if not STAT.exists():
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(word) for word in STAT.read_text("ascii").split("\n", 1)[0].split()[1:9]
    )
    busy = user + nice + system + irq + softirq
    return Ticks(busy + idle + iowait + steal, busy, nice, steal)


@dataclass(slots=True)
class Patience:
    """How long the whole benchmark may wait for quiet, all runs together."""

    left_s: float

    def wait_for_quiet(self) -> float:
        """Returns the busy share just before the run."""
        while True:
            before = read_ticks()
            time.sleep(SAMPLE_S)
            after = read_ticks()
            if before is None or after is None:
                return 0.0
            busy = (after.busy - before.busy) / max(1, after.total - before.total)
            if busy < QUIET or self.left_s <= 0:
                return busy
            self.left_s -= SAMPLE_S


class Watch:
    """Shares of all CPUs between two moments; `foreign` is what neither we nor our servers used."""

    def __init__(self, servers: tuple[int, ...] = ()) -> None:
        self.servers = servers
        self.ticks = read_ticks()
        self.own_s = self._own_s()

    def _own_s(self) -> float:
        used = [resource.getrusage(resource.RUSAGE_SELF)]
        used.append(resource.getrusage(resource.RUSAGE_CHILDREN))
        own = sum(each.ru_utime + each.ru_stime for each in used)
        return own + sum(_process_s(pid) for pid in self.servers)

    def shares(self) -> dict[str, float]:
        after = read_ticks()
        if self.ticks is None or after is None:
            return {}
        total = max(1, after.total - self.ticks.total)
        own = (self._own_s() - self.own_s) * os.sysconf("SC_CLK_TCK")
        return {
            "foreign": round(max(0.0, (after.busy - self.ticks.busy - own) / total), 3),
            "foreign_nice": round((after.nice - self.ticks.nice) / total, 3),  # none of ours is
            "steal": round((after.steal - self.ticks.steal) / total, 3),
        }


def _process_s(pid: int) -> float:
    """A server with its children: those that run, then itself and those that have ended."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    running = children.read_text("ascii").split() if children.exists() else []
    used = 0
    for child in running:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            used += sum(_times(child)[:2])
    return (used + sum(_times(pid))) / os.sysconf("SC_CLK_TCK")


def _times(pid: int | str) -> list[int]:
    """Ticks in user and system mode, then the same of children that were waited for."""
    # The name, in parentheses, may itself hold spaces; the times are 12 to 15 words after it.
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return [int(word) for word in words[11:15]]
