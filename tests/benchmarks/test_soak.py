"""Long runs with few calls."""

import pytest

from benchmarks.soak.memory import over_calls


@pytest.mark.slow
def test_few_calls() -> None:
    """A run with fewer calls than connections and steps makes at least one call per step."""
    course = over_calls(3)
    assert (course.units, len(course.megabytes)) == (10, 10)
