"""What the learner makes of upstreams that hide their limits, beside other ways to do it.

    python -m bench.learner                          the tables, then one JSON object as last line
    python -m bench.learner --draws 41:40 --seeds 3  other draws than those that were tuned on
    python -m bench.learner --quick                  Headway and the oracle, a quarter of the draws

Queued work fills what online calls leave over, in virtual time. `used` is the share of what a
sender that knows everything could have done; `harm` the share of online calls that were refused
because of queued work. The learner was tuned on draws 1 to 43 and seeds 1 and 2 of the named
scenarios; by default others are judged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from bench.learner_report import Row, bars, classes, print_classes, print_totals, totals
from bench.learning import baselines
from bench.learning.headway import cold, hinted
from bench.learning.measures import measure
from bench.learning.scenarios import NAMED, OUTAGES, Scenario
from bench.learning.simulation import Sender, Trace, Upstream, family, run

Make = Callable[[Scenario, Upstream], Sender]

SENDERS: dict[str, Make] = {
    "headway": cold,
    "headway, hinted": hinted,
    "oracle at 90 %": baselines.Oracle,
    "older formula": baselines.OlderFormula,
    "additive increase": baselines.AdditiveIncrease,
    "cubic retry": baselines.CubicRetry,
    "gradient": baselines.Gradient,
}


class Bench:
    def __init__(self, draws: tuple[int, int], seeds: list[int]) -> None:
        drawn = family(*draws)
        self.work = [(scenario, seed) for scenario in NAMED for seed in seeds]
        self.work += [(scenario, seeds[0]) for scenario in (*drawn, *OUTAGES)]
        self.alone: dict[tuple[str, int], Trace] = {}

    def rows(self, make: Make, *, drawn_only: bool, verbose: bool) -> list[Row]:
        rows = []
        for scenario, seed in self.work:
            if drawn_only and (scenario in NAMED or scenario in OUTAGES):
                continue
            key = scenario.name, seed
            if key not in self.alone:
                self.alone[key] = run(scenario, None, seed)
            found = measure(scenario, run(scenario, make, seed), self.alone[key])
            rows.append(Row(scenario, found))
            if verbose:
                print(rows[-1].line(), flush=True)
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", default="1001:40", help="START:COUNT of the drawn scenarios")
    parser.add_argument("--seeds", default="11,12", help="seeds of the named scenarios")
    parser.add_argument("--senders", default=",".join(SENDERS), help="by the start of their names")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="a line for each scenario")
    options = parser.parse_args()
    start, count = (int(part) for part in options.draws.split(":"))
    seeds = [int(seed) for seed in options.seeds.split(",")]
    wanted = [word.strip() for word in options.senders.split(",")]
    if options.quick:
        count, seeds, wanted = max(1, count // 4), seeds[:1], ["headway", "oracle"]
    bench = Bench((start, count), seeds)
    found: dict[str, list[Row]] = {}
    for name, make in SENDERS.items():
        exact = name in wanted
        if exact or any(name.startswith(word) and word not in SENDERS for word in wanted):
            full = name.startswith("headway")
            found[name] = bench.rows(make, drawn_only=not full, verbose=options.verbose)
    mine = found["headway"]
    print_totals({name: totals(rows) for name, rows in found.items()})
    print_classes(classes(mine), bars(mine, found.get("oracle at 90 %")))
    print(
        json.dumps(
            {
                "draws": f"{start}:{count}",
                "seeds": seeds,
                "classes": classes(mine),
                "drawn": {name: totals(rows) for name, rows in found.items()},
                "bars": bars(mine, found.get("oracle at 90 %")),
            }
        )
    )


if __name__ == "__main__":
    main()
