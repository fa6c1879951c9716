"""Roots: the question and the answer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.questions.question import InvalidAnswer, Question, Root, read_roots, roots_question
from tests.support.core.json_values import JSON, mostly, objects


def test_roots_are_asked_for_without_params() -> None:
    """The question requires only the capability roots."""
    assert roots_question() == Question(method="roots/list", params={}, requires={"roots": {}})


def test_roots_are_read() -> None:
    """Each root has a URI and an optional name; other fields are ignored."""
    listed = [{"uri": "file:///home/a", "name": "Home", "_meta": {}}, {"uri": "FILE:///b", "more": 1, "name": None}]
    assert read_roots({"roots": listed, "_meta": {}}) == (Root("file:///home/a", "Home"), Root("FILE:///b"))
    assert read_roots({"roots": []}) == ()


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param(None, "result: Expected `object`, got `null`", id="null"),
        pytest.param([], "result: Expected `object`, got `array`", id="list"),
        pytest.param({}, "result: Object missing required field `roots`", id="no-roots"),
        pytest.param({"roots": {}}, "roots: Expected `array`, got `object`", id="object-of-roots"),
        pytest.param({"roots": [{}]}, "roots[0]: Object missing required field `uri`", id="no-uri"),
        pytest.param({"roots": [{"uri": 5}]}, "roots[0].uri: Expected `str`, got `int`", id="number"),
        pytest.param({"roots": [{"uri": "file:///a", "name": 5}]}, "roots[0].name: Expected `str | null`", id="name"),
        pytest.param({"roots": [{"uri": "https://e.com"}]}, "roots[0].uri: must begin with file://", id="web-page"),
        pytest.param({"roots": [{"uri": "/home/a"}]}, "roots[0].uri: must begin with file://", id="path"),
    ],
)
def test_what_is_no_list_of_roots_is_refused(response: Any, problem: str) -> None:
    """The text names the field that is wrong."""
    with pytest.raises(InvalidAnswer) as caught:
        read_roots(response)
    assert str(caught.value).startswith(f"Invalid answer: {problem}")


ROOTS = st.lists(JSON | objects(mostly("uri", "file:///a", "a"), mostly("name", "Home", None)), max_size=3)


@given(JSON | objects(st.builds(lambda roots: {"roots": roots}, JSON | ROOTS)))
def test_any_json_is_roots_or_refused(response: Any) -> None:
    """Any answer results in roots or InvalidAnswer."""
    try:
        roots = read_roots(response)
    except InvalidAnswer:
        return
    assert all(isinstance(root, Root) for root in roots)
