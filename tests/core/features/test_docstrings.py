"""@tool: docstrings in three styles describe the tool and its parameters."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from axolotl_core import tool


def google(query: str, limit: int = 5) -> str:
    """Search the index.

    Finds documents by words.

    Args:
        query: What to look for,
            in plain words.
        limit (int, optional): How many to give.

    Returns:
        The documents.

    Raises:
        ValueError: If the index is gone.
    """
    raise NotImplementedError


def numpy(query: str, limit: int = 5) -> str:
    """Search the index.

    Finds documents by words.

    Parameters
    ----------
    query : str
        What to look for,
        in plain words.
    limit : int, optional
        How many to give.

    Returns
    -------
    str
        The documents.
    """
    raise NotImplementedError


def rest(query: str, limit: int = 5) -> str:
    """Search the index.

    Finds documents by words.

    :param query: What to look for,
        in plain words.
    :param limit: How many to give.
    :returns: The documents.
    :raises ValueError: If the index is gone.
    """
    raise NotImplementedError


@pytest.mark.parametrize("function", [pytest.param(each, id=each.__name__) for each in (google, numpy, rest)])
def test_a_docstring_describes_the_tool_and_its_parameters(function: Callable[..., Any]) -> None:
    """The text before the sections describes the tool, the section of parameters its arguments."""
    made = tool(function)
    properties = made.input_schema["properties"]
    assert made.description == "Search the index.\n\nFinds documents by words."
    assert properties["query"]["description"].replace("\n", " ") == "What to look for, in plain words."
    assert properties["limit"] == {"type": "integer", "default": 5, "description": "How many to give."}


def test_an_annotated_description_beats_the_docstring() -> None:
    """A description at the parameter takes precedence."""

    def probe(a: Annotated[int, Field(description="From the annotation")], b: Annotated[int, Field(ge=0)]) -> int:
        """Probe.

        Args:
            a: From the docstring.
            b: Also from the docstring.
        """
        raise NotImplementedError

    properties = tool(probe).input_schema["properties"]
    assert properties["a"]["description"] == "From the annotation"
    assert properties["b"] == {"type": "integer", "minimum": 0, "description": "Also from the docstring."}


def test_an_option_beats_the_docstring() -> None:
    """A description given to the decorator is the description."""
    assert tool(description="Mine")(google).description == "Mine"


def test_a_docstring_without_sections_is_the_description() -> None:
    """Colons and lists in free text are not sections."""

    def probe(a: int) -> int:
        """Use `key:value` pairs: see below.

        - one: first
        - two: second
        """
        raise NotImplementedError

    made = tool(probe)
    assert made.description == "Use `key:value` pairs: see below.\n\n- one: first\n- two: second"
    assert made.input_schema["properties"]["a"] == {"type": "integer"}


def test_a_parameter_that_is_described_but_not_there_is_ignored() -> None:
    """A docstring that is out of date breaks nothing."""

    def probe(a: int) -> int:
        """Probe.

        Args:
            a: The number.
            gone: Was here once.
        """
        raise NotImplementedError

    assert list(tool(probe).input_schema["properties"]) == ["a"]


def test_a_function_without_docstring_has_an_empty_description() -> None:
    """Without a docstring, there is no description."""

    def probe(a: int) -> int:
        raise NotImplementedError

    assert tool(probe).description == ""
