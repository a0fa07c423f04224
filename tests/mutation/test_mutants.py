"""The tool that changes the core: what it changes, and what it leaves alone."""

from __future__ import annotations

from tests.mutation.__main__ import every_mutant, sample
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants_of

SOURCE = '''
"""About it."""

MOST = 3

def least(left: int, right: int = 0) -> int:
    """The smaller one."""
    assert left != right, "they differ"
    if left < right and left:
        return min(left, right + 1)
    raise ValueError(f"{left + 1} is too much")
'''


def changes() -> set[tuple[str, str]]:
    return {(each.before, each.after) for each in mutants_of("least.py", SOURCE)}


def test_comparisons_conditions_numbers_calls_and_results_are_changed() -> None:
    assert {
        ("left < right", "left <= right"), ("left < right", "left >= right"), ("3", "4"),
        ("left < right and left", "left < right or left"), ("right + 1", "right - 1"),
        ("min(left, right + 1)", "max(left, right + 1)"), ("1", "2"), ("0", "1"),
        ("return min(left, right + 1)", "return None"),
    } <= changes()  # fmt: skip


def test_what_is_only_said_is_left_alone() -> None:
    assert not any("differ" in before or before == "left + 1" for before, _ in changes())


def test_a_mutant_does_what_it_says() -> None:
    (swapped,) = (each for each in mutants_of("least.py", SOURCE) if each.after.startswith("max("))
    there: dict[str, object] = {}
    exec(swapped.code(SOURCE, "least.py"), there)

    assert swapped.scope == "least"
    assert there["least"](1, 5) == 6  # type: ignore[operator]


def test_every_file_of_the_core_has_its_share_of_a_sample() -> None:
    found = every_mutant()
    chosen = sample(found, 300, seed=1)

    assert {mutant.path for mutant in chosen} == set(found)
    assert 250 <= len(chosen) <= 350
    assert chosen == sample(found, 300, seed=1)


def test_what_is_said_to_change_nothing_is_there() -> None:
    places = {mutant.place for mutants in every_mutant().values() for mutant in mutants}

    assert set(EQUIVALENT) <= places
