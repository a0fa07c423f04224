"""The real core in a world that does everything to it, checked after every step."""

from __future__ import annotations

import pytest

from tests.sim.world import World

STEPS, CHUNK = 5_000, 4
SOON, LATER = range(0, 16, CHUNK), range(16, 28, CHUNK)


def run(seed: int, steps: int) -> World:
    world = World(seed)
    try:
        world.run(steps)
    except Exception as error:
        error.add_note(f"repeat it with: python -m tests.sim {seed} --steps {steps}")
        raise
    return world


@pytest.mark.parametrize(
    "first", [*SOON, *(pytest.param(each, marks=pytest.mark.soak) for each in LATER)]
)
def test_no_rule_is_ever_broken(first: int) -> None:
    for seed in range(first, first + CHUNK):
        run(seed, STEPS)


def test_the_same_seed_gives_the_same_history() -> None:
    for seed in range(5):
        assert run(seed, 1_500).history.digest() == run(seed, 1_500).history.digest()


def test_different_seeds_give_different_histories() -> None:
    assert run(1, 300).history.digest() != run(2, 300).history.digest()


def test_a_failing_seed_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(_world: World) -> None:
        raise AssertionError("stumbled")

    monkeypatch.setattr(World, "settle", stumble)
    with pytest.raises(AssertionError) as caught:
        run(7, 10)
    assert caught.value.__notes__ == ["repeat it with: python -m tests.sim 7 --steps 10"]


@pytest.mark.soak
def test_no_rule_is_ever_broken_for_long() -> None:
    for seed in range(10_000, 13_000):
        run(seed, STEPS)
