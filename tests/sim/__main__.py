"""Repeat one run of the simulator: python -m tests.sim SEED [--steps N]."""

from __future__ import annotations

import argparse

from tests.sim.world import World


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--steps", type=int, default=5_000)
    arguments = parser.parse_args()
    world = World(arguments.seed)
    try:
        world.run(arguments.steps)
    except Exception:
        print(f"seed {arguments.seed} failed at step {world.steps}, time {world.now!r}")
        raise
    print(f"seed {arguments.seed}: {world.steps} steps, history {world.history.hexdigest()}")


if __name__ == "__main__":
    main()
