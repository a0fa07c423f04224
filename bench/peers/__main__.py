"""The driver: workload by workload, product by product, again; then the tables and the bars."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.peers import bars, raw, surroundings, tables
from bench.peers.figures import FEWEST_CLEAN, Cell, Cells, Ratios, cell, is_loaded, limit, ratio
from bench.peers.load import Patience, Watch
from bench.peers.products import (
    OURS,
    PRODUCTS,
    STORES,
    Product,
    chosen_products,
    chosen_workloads,
    compared_with,
)
from bench.peers.servers import Servers, servers_for

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 3
LIMIT_S = 150.0  # for one measurement
PATIENCE_S = 60.0
SAMPLE_S = 0.4  # for one look at a limit of the machine

Run = dict[str, Any]


@dataclass(slots=True)
class Session:
    """One run of the benchmark."""

    directory: Path
    servers: Servers
    quick: bool
    patience: Patience
    samples: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=lambda: defaultdict(list))

    def measure(self, product: Product, workload: str, turn: int) -> None:
        jobs = product.job_count(workload, quick=self.quick)
        busy_before = 0.0 if self.quick else self.patience.wait_for_quiet()
        watch = Watch(self.servers.pids())
        start = time.monotonic()
        run = self._in_own_process(product, workload, jobs)
        run |= watch.shares()
        run |= {"turn": turn, "took_s": round(time.monotonic() - start, 1)}
        run["busy_before"] = round(busy_before, 3)
        self.runs[workload, product.name].append(run)
        figure = tables.number(run.get("figure")) if "figure" in run else run["error"]
        mark = tables.LOADED if is_loaded(run) else ""
        print(f"{workload:9} {product.name:17} {figure}{mark}", file=sys.stderr, flush=True)

    def _in_own_process(self, product: Product, workload: str, jobs: int) -> Run:
        command = [_python(product), "-m", "bench.peers.measure", product.adapter, workload]
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            surroundings.DIRECTORY: str(self.directory),
            surroundings.VARIANT: product.variant,
        }
        process = subprocess.Popen(
            [*command, str(jobs)],
            cwd=self.directory,
            env=environment | self.servers.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            said, complaint = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            said, complaint = "", f"took more than {LIMIT_S:.0f} s"
        finally:
            _end(process)
        try:
            run: Run = json.loads(said.splitlines()[-1])
        except (IndexError, ValueError):
            return {"jobs": jobs, "error": (complaint.strip() or "said nothing")[-300:]}
        return run

    def repeat(self, workload: str, products: Sequence[Product], repeats: int) -> None:
        """Each time another product begins, since each leaves the disk as it used it.

        Once more, at the end, for those that were disturbed.
        """
        for turn in range(repeats):
            self.sample_limits()
            first = turn * len(products) // repeats
            for product in [*products[first:], *products[:first]]:
                if not self._failed(workload, product):
                    self.measure(product, workload, turn)
        for product in products if repeats >= FEWEST_CLEAN else ():
            runs = self.runs[workload, product.name]
            clean = sum(not is_loaded(run) for run in runs)
            if clean < FEWEST_CLEAN and not self._failed(workload, product):
                self.measure(product, workload, repeats)

    def sample_limits(self) -> None:
        """Again and again: a disk that others use too is not equally fast all the time."""
        os.environ[surroundings.DIRECTORY] = str(self.directory)
        for name, measure in raw.MACHINE.items():
            watch = Watch()
            self.samples[name].append({"figure": measure(SAMPLE_S)} | watch.shares())

    def limits(self) -> dict[str, float]:
        return {name: round(limit(samples)) for name, samples in self.samples.items()}

    def _failed(self, workload: str, product: Product) -> bool:
        return any("error" in run for run in self.runs[workload, product.name])

    def cells(self) -> Cells:
        """A peer that failed once is judged by its other runs; Headway is not."""
        found: dict[str, dict[str, Cell]] = defaultdict(dict)
        for (workload, name), runs in self.runs.items():
            strict = PRODUCTS[name] in OURS and any("error" in run for run in runs)
            figure = None if strict else cell(runs)
            if figure is not None:
                found[workload][name] = figure
        return found

    def ratios(self) -> Ratios:
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for (workload, name), runs in self.runs.items():
            headway = compared_with(PRODUCTS[name]).name
            share = ratio(self.runs.get((workload, headway), []), runs)
            if share is not None and name != headway:
                found[workload][name] = share
        return found

    def errors(self, workload: str) -> dict[str, str]:
        return {
            name: run["error"]
            for (of, name), runs in self.runs.items()
            for run in runs
            if of == workload and "error" in run
        }


def _python(product: Product) -> str:
    if not product.environment:
        return sys.executable
    return str(Path(sys.prefix) / product.environment / "bin" / "python")


def _end(process: subprocess.Popen[str]) -> None:
    """It ends its own worker when asked to."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def versions(servers: Servers) -> dict[str, str]:
    names = ["apsw", "asyncpg", "celery", "chancy", "dramatiq", "huey", "litequeue"]
    names += ["persist-queue", "pgqueuer", "procrastinate", "psycopg", "psycopg-pool", "redis"]
    names += ["rq", "saq", "taskiq", "taskiq-redis"]
    found = {"python": platform.python_version()}
    found |= {name: importlib.metadata.version(name) for name in names}
    elsewhere = [str(path) for path in Path(sys.prefix).glob("arq/lib/python*/site-packages")]
    for each in importlib.metadata.distributions(name="arq", path=elsewhere):
        found["arq"] = each.version
    return found | servers.versions()


def report(session: Session, workloads: Sequence[str]) -> bool:
    """Print all; True when Headway could be measured wherever it was asked to be."""
    cells, ratios = session.cells(), session.ratios()
    limits = session.limits()
    scaled_by = bars.scale(limits)
    print()
    for workload in workloads:
        lines = tables.workload_table(
            workload,
            cells.get(workload, {}),
            ratios.get(workload, {}),
            session.errors(workload),
        )
        print("\n".join(lines), end="\n\n")
    print(
        f"Limits of this machine: fdatasync {limits['fdatasync_per_s']:,.0f}/s, plain rows one in a"
        f" transaction {limits['plain_rows_per_s']:,.0f}/s. Absolute bars are scaled by"
        f" {scaled_by:.2f}."
    )
    asked = {name for _, name in session.runs}
    verdicts = [each for each in bars.verdicts(cells, ratios, scaled_by) if each.product in asked]
    print("\n".join(tables.verdict_table(verdicts)), end="\n\n")
    everything = [run for runs in session.runs.values() for run in runs]
    loaded = sum(is_loaded(run) for run in everything)
    print(
        f"Foreign load: noticed in {loaded} of {len(everything)} runs; a figure that could not do"
        f" without them has a {tables.LOADED}."
    )
    if 2 * loaded > len(everything):
        print("Most runs were disturbed: repeat this on a quiet machine before judging the bars.")
    if session.quick:
        print("This was a quick run: too few jobs for the figures to mean much.")
    print(json.dumps(_summary(session, scaled_by, verdicts)))
    failed = {name for workload in workloads for name in session.errors(workload)}
    return failed.isdisjoint(each.name for each in OURS)


def _summary(
    session: Session, scaled_by: float, verdicts: Sequence[bars.Verdict]
) -> dict[str, Any]:
    return {
        "quick": session.quick,
        "cpus": os.cpu_count(),
        "versions": versions(session.servers),
        "limits": session.limits(),
        "scale": round(scaled_by, 3),
        "figures": {
            workload: {name: asdict(each) for name, each in of.items()}
            for workload, of in session.cells().items()
        },
        "headway_over": session.ratios(),
        "bars": [asdict(verdict) for verdict in verdicts],
        "runs": {f"{workload} {name}": runs for (workload, name), runs in session.runs.items()},
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.peers", description=__doc__)
    parser.add_argument(
        "--only", default="", help=f"products or stores ({', '.join(STORES)}): headway,huey,redis"
    )
    parser.add_argument("--workloads", default="", help="for example: w1,w2")
    parser.add_argument("--repeat", type=int, help=f"{REPEATS}, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="few jobs, to see that all works")
    chosen = parser.parse_args()
    try:
        chosen.products = chosen_products(filter(None, chosen.only.split(",")))
        chosen.workloads = chosen_workloads(filter(None, chosen.workloads.split(",")))
    except ValueError as error:
        parser.error(str(error))
    chosen.repeat = chosen.repeat or (1 if chosen.quick else REPEATS)
    return chosen


def main() -> int:
    chosen = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # so that everything started is ended
    with ExitStack() as ends:
        # Beside the project, not in /tmp: that may be memory, which syncs in no time.
        place = tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT, ignore_cleanup_errors=True)
        directory = Path(ends.enter_context(place))
        servers = ends.enter_context(servers_for(chosen.products, directory))
        session = Session(directory, servers, chosen.quick, Patience(PATIENCE_S))
        for workload in chosen.workloads:
            takers = [each for each in chosen.products if workload in each.workloads]
            if not all(each.headroom for each in takers):
                session.repeat(workload, takers, chosen.repeat)
        return 0 if report(session, chosen.workloads) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; everything that was started has ended")
