"""Changes the core in small ways, and counts the changes that no test notices.

`.venv/bin/python -m tests.mutation --sample 600 --seed 7`
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.quick import Campaign
from tests.mutation.running import PACKAGE, ROOT, TESTS, covered, killed, run_pytest

WANTED = 85.0  # percent


def every_mutant() -> dict[str, list[Mutant]]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        mutants = list(mutants_of(name, path.read_text("utf-8")))
        if mutants:
            found[name] = mutants
    return found


def sample(found: dict[str, list[Mutant]], size: int, seed: int) -> list[Mutant]:
    """From each file as its share is, and from every file something."""
    random = Random(seed)
    total = sum(len(each) for each in found.values())
    chosen: list[Mutant] = []
    for mutants in found.values():
        share = min(len(mutants), max(1, round(size * len(mutants) / total)))
        chosen += random.sample(mutants, share)
    random.shuffle(chosen)  # so that one that is interrupted says something about all of it
    return chosen


def run(arguments: argparse.Namespace) -> int:
    found = {name: each for name, each in every_mutant().items() if name.startswith(arguments.only)}
    print(f"{sum(map(len, found.values()))} mutants of {len(found)} files are possible", flush=True)
    known = covered(Path(arguments.map))
    chosen = sample(found, arguments.sample, arguments.seed)
    alike = [mutant for mutant in chosen if mutant.place in EQUIVALENT]
    tried, noticed = Counter[str](), Counter[str]()

    def heard(mutant: Mutant, how: str) -> None:
        tried[mutant.path] += 1
        noticed[mutant.path] += bool(how)
        if arguments.verbose or not how:
            how = how or "SURVIVED"
            print(f"{tried.total():4} {how:16} line {mutant.line}: {mutant.name}", flush=True)

    left = [mutant for mutant in chosen if mutant.place not in EQUIVALENT]
    quick = [mutant for mutant in left if mutant.scope or mutant.is_value]
    # First those that load the core anew: afterwards it is in this process, as it really is.
    for mutant in left:
        if mutant not in quick:
            heard(mutant, killed(mutant, known))
    run_pytest(TESTS, [Campaign(quick, known, heard)])
    return report(tried, noticed, len(alike))


def report(tried: Counter[str], noticed: Counter[str], alike: int) -> int:
    for name in sorted(tried):
        share = 100.0 * noticed[name] / tried[name]
        print(f"{name:28} {noticed[name]:4} of {tried[name]:4}  {share:5.1f} %")
    share = 100.0 * noticed.total() / max(1, tried.total())
    print(
        f"{noticed.total()} of {tried.total()} were noticed: {share:.1f} % "
        f"(and {alike} were left out that change nothing); {WANTED:g} % are wanted"
    )
    return 0 if share >= WANTED else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--only", default="", help="files that begin so, such as learning/")
    parser.add_argument(
        "--map",
        default=str(ROOT / "build" / "mutants" / "covered.json"),
        help="where is kept which test enters what; remove it when tests change",
    )
    parser.add_argument("--verbose", action="store_true", help="show those that were noticed too")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
