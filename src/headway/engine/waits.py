"""Jobs that wait for other jobs (`after=`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Waits:
    """Who waits for whom. A job is free when all that it waits for are completed."""

    def __init__(self) -> None:
        self._on: dict[int, set[int]] = {}  # job -> the jobs that wait for it
        self._left: dict[int, set[int]] = {}  # job -> the jobs it still waits for

    def __contains__(self, job: int) -> bool:
        return job in self._left

    @property
    def any(self) -> bool:
        return bool(self._left)

    def add(self, job: int, others: Iterable[int]) -> None:
        left = self._left.setdefault(job, set())
        for other in others:
            left.add(other)
            self._on.setdefault(other, set()).add(job)

    def blockers(self, job: int) -> list[int]:
        return sorted(self._left.get(job, ()))

    def completed(self, job: int) -> Iterator[int]:
        """The jobs that are free now."""
        for waiting in sorted(self._on.pop(job, ())):
            left = self._left[waiting]
            left.discard(job)
            if not left:
                del self._left[waiting]
                yield waiting

    def broken(self, job: int) -> list[int]:
        """The jobs that waited for one that will not complete."""
        waiting = sorted(self._on.get(job, ()))
        for each in waiting:
            self.forget(each)
        return waiting

    def forget(self, job: int) -> None:
        """It waits for nobody any more."""
        for other in self._left.pop(job, ()):
            waiting = self._on.get(other)
            if waiting is not None:
                waiting.discard(job)
                if not waiting:
                    del self._on[other]
