"""From the runs of `bench.slots` to figures, bars and tables. Pure: numbers in, lines out."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.peers import tables
from bench.peers.bars import Verdict
from bench.peers.figures import Cell, cell, is_loaded, limit, ratio
from bench.peers.leases import (
    CAP,
    CLIENTS,
    CONTENDERS,
    HEADWAY,
    HEADWAY_PG,
    PEERS,
    Contender,
    compared_with,
)
from bench.peers.products import POSTGRES
from bench.slots_drive import Run

KEYS = (1, 100)
HTTP = "http "  # begins the name of what is measured over it
BARE = f"{HTTP}bare"

# What Headway has to reach, in pairs a second.
IN_PROCESS = {1: 5_000.0, 100: 15_000.0}
OVER_HTTP = 2_000.0
OF_BARE = 0.35  # of the bare exchange, if that is easier


@dataclass(slots=True)
class Results:
    """All runs, by the number of keys and by who was measured."""

    runs: dict[tuple[int, str], list[Run]] = field(default_factory=lambda: defaultdict(list))
    samples: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))

    def cell(self, keys: int, name: str) -> Cell | None:
        return cell(self.runs.get((keys, name), []))

    def ratio(self, keys: int, ours: str, theirs: str) -> float | None:
        return ratio(self.runs.get((keys, ours), []), self.runs.get((keys, theirs), []))

    def over(self, keys: int, name: str) -> float | None:
        """Headway on the same store, divided by it; over HTTP, it divided by the bare exchange."""
        if name.startswith(HTTP):
            return None if name == BARE else self.ratio(keys, name, BARE)
        ours = compared_with(CONTENDERS[name]).name
        return None if name == ours else self.ratio(keys, ours, name)

    def median(self, keys: int, name: str, what: str) -> float | None:
        found = [run[what] for run in self.runs.get((keys, name), []) if what in run]
        return statistics.median(found) if found else None

    def measured(self, keys: int, *, http: bool) -> list[str]:
        """Those with a figure, the best first."""
        found = {
            name: figure.median
            for of, name in self.runs
            if of == keys and name.startswith(HTTP) == http and (figure := self.cell(of, name))
        }
        return sorted(found, key=lambda name: -found[name])

    def errors(self) -> dict[tuple[int, str], str]:
        return {
            at: run["error"] for at, runs in self.runs.items() for run in runs if "error" in run
        }

    def limits(self) -> dict[str, float]:
        return {name: round(limit(samples)) for name, samples in self.samples.items()}

    def loaded(self) -> tuple[int, int]:
        """(runs beside which others used the machine, all runs)"""
        everything = [run for runs in self.runs.values() for run in runs]
        return sum(is_loaded(run) for run in everything), len(everything)


# ---------------------------------------------------------------------- bars


def verdicts(results: Results) -> list[Verdict]:
    """Of those that were to be measured in this run."""
    on_postgres = [peer for peer in PEERS if peer.store == POSTGRES]
    asked = {name for _, name in results.runs}
    found: list[Verdict] = []
    for keys in KEYS:
        found.append(_in_process(results, keys))
        found.append(_ahead(results, keys, HEADWAY, PEERS))
        found.append(_ahead(results, keys, HEADWAY_PG, on_postgres))
        found.append(_over_http(results, keys))
        found += [_never_more(results, keys, name) for name in sorted(asked - {BARE})]
    return [verdict for verdict in found if verdict.product in asked]


def _in_process(results: Results, keys: int) -> Verdict:
    reached, asked = results.cell(keys, HEADWAY.name), IN_PROCESS[keys]
    measured = None if reached is None else reached.median
    met = None if measured is None else measured >= asked
    return Verdict(HEADWAY.name, f"pairs/s, {keys_text(keys)}", asked, measured, met)


def _ahead(results: Results, keys: int, ours: Contender, peers: Iterable[Contender]) -> Verdict:
    """Of all that was measured: the closest one counts. Whoever dies with a token that does not
    expire takes the place along, so that such tokens are in the table, but are no leases.
    """
    ratios = {
        peer.name: share
        for peer in peers
        if peer.durable and peer.expires
        if (share := results.ratio(keys, ours.name, peer.name)) is not None
    }
    bar = f"ahead of every durable lease, {keys_text(keys)}"
    if not ratios:
        return Verdict(ours.name, bar, 1.0, None, None)
    closest = min(ratios, key=lambda name: ratios[name])
    return Verdict(ours.name, bar, 1.0, ratios[closest], ratios[closest] > 1.0, closest)


def _over_http(results: Results, keys: int) -> Verdict:
    name = f"{HTTP}headway"
    reached, share = results.cell(keys, name), results.over(keys, name)
    bar = f"pairs/s, {keys_text(keys)}"
    if reached is None:
        return Verdict(name, bar, OVER_HTTP, None, None)
    met = reached.median >= OVER_HTTP or (share is not None and share >= OF_BARE)
    remark = f"or {OF_BARE} of the bare exchange: {tables.number(share)}"
    return Verdict(name, bar, OVER_HTTP, reached.median, met, remark)


def _never_more(results: Results, keys: int, name: str) -> Verdict:
    """A peer that gives away too many places cannot be compared with."""
    reached = results.cell(keys, name)
    bar = f"holders beyond {CAP} at a key, {keys_text(keys)}"
    if reached is None:
        return Verdict(name, bar, 0.0, None, None)
    return Verdict(name, bar, 0.0, float(reached.overlaps), reached.overlaps == 0)


def keys_text(keys: int) -> str:
    return "1 key" if keys == 1 else f"{keys} keys"


# ---------------------------------------------------------------------- tables


def report(results: Results, *, quick: bool) -> list[str]:
    lines: list[str] = []
    for keys in KEYS:
        lines += ["", f"{CLIENTS} clients, {keys_text(keys)}, {CAP} places at each, pairs/s"]
        for part in (contender_table(results, keys), http_table(results, keys)):
            lines += part if len(part) > 1 else []
    lines += [f"  {keys} {name}: {error}" for (keys, name), error in results.errors().items()]
    lines += ["", *_verdict_lines(verdicts(results)), ""]
    lines += [f"  {each.name:20} {each.settings}" for each in CONTENDERS.values()]
    loaded, everything = results.loaded()
    lines += [
        "",
        f"Limits of this machine: fdatasync {results.limits()['fdatasync_per_s']:,.0f}/s.",
        f"Foreign load: noticed in {loaded} of {everything} runs; a figure that could not do"
        f" without them has a {tables.LOADED}.",
    ]
    if 2 * loaded > everything:
        lines.append("Most runs were disturbed: look at ratios and CPU, or repeat this when quiet.")
    if quick:
        lines.append("This was a quick run: too short for the figures to mean much.")
    return lines


def _verdict_lines(found: Sequence[Verdict]) -> list[str]:
    """Nobody needs to read each time that nobody had too many."""
    held = [each for each in found if each.bar.startswith("holders") and each.met is not None]
    rest = [each for each in found if not each.bar.startswith("holders") or each.met is False]
    kept = sum(each.met is True for each in held)
    return [*tables.verdict_table(rest), f"  the cap was kept in {kept} of {len(held)} figures"]


def contender_table(results: Results, keys: int) -> list[str]:
    head = ["in process", "acknowledged", "expires", "order", *FIGURES, "headway / it", "runs"]
    rows = []
    for name in results.measured(keys, http=False):
        contender = CONTENDERS[name]
        expires = "yes" if contender.expires else "no"
        promises = [contender.acknowledged, expires, contender.order]
        rows.append([name, *promises, *_figures(results, keys, name)])
    return tables.table(head, rows)


def http_table(results: Results, keys: int) -> list[str]:
    head = ["over HTTP", "acquires in a pair", *FIGURES, "it / bare", "runs"]
    rows = []
    for name in results.measured(keys, http=True):
        asked = tables.number(results.median(keys, name, "asked"))
        rows.append([name, asked, *_figures(results, keys, name)])
    return tables.table(head, rows)


FIGURES = ("median", "min", "max", "p50 ms", "p99 ms", "least/most", "CPU µs")


def _figures(results: Results, keys: int, name: str) -> list[str]:
    of = results.cell(keys, name)
    assert of is not None
    more = [results.median(keys, name, what) for what in ("p50", "p99", "least", "cpu_us")]
    row = [tables.number(each) for each in (of.median, of.low, of.high, *more)]
    row[0] += tables.LOADED * of.loaded
    return [*row, tables.number(results.over(keys, name)), str(of.runs)]


def summary(results: Results, about: Mapping[str, Any]) -> dict[str, Any]:
    """All of it, for whoever compares by program."""
    figures: dict[str, dict[str, Any]] = defaultdict(dict)
    ratios: dict[str, dict[str, float | None]] = defaultdict(dict)
    for keys in KEYS:
        for name in (*results.measured(keys, http=False), *results.measured(keys, http=True)):
            reached = results.cell(keys, name)
            assert reached is not None
            figures[str(keys)][name] = asdict(reached)
            ratios[str(keys)][name] = results.over(keys, name)
    return {
        **about,
        "limits": results.limits(),
        "figures": figures,
        "ratios": ratios,  # in process: Headway over it; over HTTP: it over the bare exchange
        "bars": [asdict(verdict) for verdict in verdicts(results)],
        "runs": {f"{keys} {name}": runs for (keys, name), runs in results.runs.items()},
    }
