"""`make fuzz`: every target for some seconds, led by coverage where atheris is installed.

It ends by itself. Each finding is printed once, as an input that can become a seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

try:
    import atheris
except ImportError:
    atheris = None

if atheris is None:
    from tests.fuzz.targets import BY_NAME, TARGETS
else:
    with atheris.instrument_imports(include=["headway"]):
        from tests.fuzz.targets import BY_NAME, TARGETS

from tests.fuzz.target import MAX_BYTES, Target, place_of
from tests.fuzz.test_fuzz import near

SPARE_S = 60.0  # after which a process that does not end is ended
MAX_MB = 2_048


class Tally:
    """What one target was shown, in a file that its process leaves."""

    def __init__(self, target: Target, file: Path) -> None:
        self._target = target
        self._file = file
        self._known: set[str] = set()
        self._count = 0
        self._told = 0

    def try_out(self, data: bytes) -> None:
        self._count += 1
        try:
            self._target.try_out(data)
        except Exception as error:
            self._found(error, data)
        # libFuzzer leaves without a word, so the number is written down on the way.
        if self._count >= self._told * 1.1 or not self._count % 1_000:
            self._told = self._count
            self._file.write_text(f"{self._count} {len(self._known)}", "utf-8")

    def _found(self, error: Exception, data: bytes) -> None:
        kind = f"{type(error).__name__} at {place_of(error.__traceback__)}"
        if kind not in self._known:
            self._known.add(kind)
            said = str(error).splitlines() or [""]
            print(f"FOUND {self._target.name}: {kind}: {said[0][:120]}\n      {data!r}", flush=True)


def guided(target: Target, tally: Tally, seconds: int, place: Path) -> None:
    corpus = place / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = []
    if target.words:
        words = place / "words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words), "ascii")
        options = [f"-dict={words}"]
    quiet = os.open(place / "libfuzzer.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(quiet, 2)
    atheris.Setup(
        [
            "fuzz", str(corpus), f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}",
            *options, f"-artifact_prefix={place}/", f"-rss_limit_mb={MAX_MB}",
            "-timeout=60", "-verbosity=0",
        ],
        tally.try_out,
    )  # fmt: skip
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def unguided(target: Target, tally: Tally, seconds: int, place: Path) -> None:
    del place
    until = time.monotonic() + seconds

    @settings(
        max_examples=500, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), derandomize=False,
    )  # fmt: skip
    @given(near(target))
    def try_some(data: bytes) -> None:
        if time.monotonic() < until:
            tally.try_out(data)

    while time.monotonic() < until:
        try_some()


def forked(target: Target, seconds: int) -> tuple[int, int]:
    """(executions, findings). In a process of its own: libFuzzer ends the one it runs in."""
    fuzz: Callable[[Target, Tally, int, Path], None] = unguided if atheris is None else guided
    with tempfile.TemporaryDirectory(prefix="headway-fuzz-") as name:
        place = Path(name)
        count = place / "count"
        child = os.fork()
        if child == 0:
            code = 1
            try:
                tally = Tally(target, count)
                for seed in target.seeds:
                    tally.try_out(seed)
                fuzz(target, tally, seconds, place)
                code = 0
            finally:
                os._exit(code)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        shown, found = (int(each) for each in count.read_text("utf-8").split())
        if ended != 0:
            log = place / "libfuzzer.log"
            said = log.read_text("utf-8", "replace")[-600:] if log.exists() else ""
            print(f"FOUND {target.name}: its process ended with {ended}\n{said}", flush=True)
            found += 1
        return shown, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="for each target")
    parser.add_argument("--only", default="", help="targets whose names begin so")
    said = parser.parse_args()
    print(f"led by {'coverage (atheris)' if atheris else 'hypothesis'}, {said.seconds} s each")
    shown = found = 0
    for name, target in BY_NAME.items():
        if name.startswith(said.only):
            one, faults = forked(target, said.seconds)
            print(f"{name:20} {one:9} executions, {faults} found", flush=True)
            shown, found = shown + one, found + faults
    print(f"{shown} executions of {len(TARGETS)} targets, {found} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
