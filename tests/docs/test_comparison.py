"""The comparison on the first page matches the installed versions of all three projects."""

from typing import Any

import pytest

from tests.support.docs.comparison import ROWS, comparison_table, try_projects
from tests.support.docs.pages import read_page, region_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> Any:
    """Try the projects once."""
    return try_projects()


def test_table(found: Any) -> None:
    """Every cell of the table follows from a trial; `python -m tests.docs README.md` updates it."""
    assert region_of(read_page("README.md"), "comparison") == comparison_table(found)


def test_every_trial_has_a_row(found: Any) -> None:
    """Nothing that was tried is left out of the table."""
    assert {row.trial for row in ROWS} == set(found["axolotl"])


def test_notes_apply(found: Any) -> None:
    """No note describes a result that was not found."""
    assert [
        (row.title, project) for row in ROWS for project, result in row.notes if found[project][row.trial] is not result
    ] == []
