"""Whatever comes from outside, a parser gives an answer or one of its own errors, in short time."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.target import Target
from tests.fuzz.targets import BY_NAME, TARGETS

EXAMPLES = 20


def near(target: Target) -> st.SearchStrategy[bytes]:
    """A seed with some of it changed, or something new out of the words of its language."""
    parts = st.one_of(
        st.sampled_from([*target.seeds, *target.words]), st.binary(max_size=12),
        st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    )  # fmt: skip
    made = st.lists(parts, max_size=6).map(b"".join)
    changed = st.builds(
        lambda seed, at, new, gone: seed[: at % (len(seed) + 1)]
        + new
        + seed[at % (len(seed) + 1) + gone :],
        st.sampled_from(target.seeds), st.integers(0, 400), parts, st.integers(0, 6),
    )  # fmt: skip
    return st.one_of(changed, made)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_nothing_from_outside_breaks_the_parser(target: Target) -> None:
    for seed in target.seeds:
        target.try_out(seed)

    @settings(max_examples=EXAMPLES, database=None)
    @given(near(target))
    @example(b"")
    @example(b"\xff\xfe\x00")
    def try_some(data: bytes) -> None:
        target.try_out(data)

    try_some()


def test_every_target_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(TARGETS)
