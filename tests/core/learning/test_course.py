"""What the learner does is what it did: numbers do not move unless somebody means them to."""

from __future__ import annotations

import json

import pytest

from tests.core.learning.course import FILE, courses

KNOWN = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", courses())
def test_the_course_is_the_one_that_was_looked_at(name: str) -> None:
    found = json.loads(json.dumps(courses()[name]()))
    assert found == KNOWN[name], "if you mean it: python -m tests.core.learning.course --write"


def test_no_course_is_known_that_nobody_runs() -> None:
    assert set(KNOWN) == set(courses())
