"""The nearest known name for a misspelled one."""

import difflib

import pytest

from axolotl_core.errors import ToolNotFound
from axolotl_core.names import nearest

KNOWN = ["get_weather", "search_documents", "Echo", "straße"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param("get_wether", "get_weather", id="letter-missing"),
        pytest.param("getweather", "get_weather", id="underscore-missing"),
        pytest.param("search_document", "search_documents", id="singular"),
        pytest.param("GET_WEATHER", "get_weather", id="other-case"),
        pytest.param("ehco", "Echo", id="letters-swapped"),
        pytest.param("STRASE", "straße", id="folded"),
        pytest.param("delete_everything", None, id="far"),
        pytest.param("x", None, id="short"),
        pytest.param("", None, id="empty"),
    ],
)
def test_the_nearest_name_is_found_if_one_is_near(asked: str, expected: str | None) -> None:
    """A misspelled name finds the right one in its declared spelling; a different name finds none."""
    assert nearest(asked, KNOWN) == expected


def test_the_nearest_of_several_is_chosen() -> None:
    """The most similar name wins, in any order."""
    assert nearest("list_users", ["list_user_s", "list_userz", "list_user"]) == nearest(
        "list_users", ["list_user", "list_userz", "list_user_s"]
    )
    assert nearest("read_file", ["read_files", "read_fi", "write_file"]) == "read_files"


def test_the_work_is_bounded() -> None:
    """A long name, or a long list of known names, does not occupy the server."""
    assert nearest("a" * 300, ["a" * 300]) is None
    names = [f"tool_number_{number}" for number in range(2000)]
    assert nearest("tool_number_999x", names) == "tool_number_999"
    assert nearest("echoo", [*names, "echo"]) is None


def test_few_names_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among a thousand similar names, at most twenty are compared with a misspelled one, and the right one is found."""
    compared: list[str] = []
    compare = difflib.SequenceMatcher.set_seq1

    def note(matcher: difflib.SequenceMatcher[str], name: str) -> None:
        compared.append(name)
        compare(matcher, name)

    monkeypatch.setattr(difflib.SequenceMatcher, "set_seq1", note)
    names = [f"billing.invoice_{number}.create_report" for number in range(1000)]
    assert nearest("billing.invocie_427.create_report", names) == "billing.invoice_427.create_report"
    assert 0 < len([name for name in compared if name]) <= 20


def test_nothing_is_near_to_nothing() -> None:
    """Without known names, there is no suggestion."""
    assert nearest("echo", iter(())) is None


@pytest.mark.parametrize(
    ("suggestion", "message"),
    [
        pytest.param(None, "Tool not found: ehco", id="none"),
        pytest.param("echo", "Tool not found: ehco (did you mean 'echo'?)", id="near"),
    ],
)
def test_the_error_carries_the_suggestion(suggestion: str | None, message: str) -> None:
    """The error for an unknown tool contains its name and the nearest one."""
    assert ToolNotFound("ehco", suggestion).message == message
