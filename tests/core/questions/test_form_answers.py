"""Form answers: accepted and rejected values."""

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, create_model

from axolotl_core.questions.question import InvalidAnswer, read_form


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def read_one(annotation: Any, value: Any) -> Any:
    """Read a form of one field."""
    return read_form(
        create_model("Answer", x=(annotation, ...)), {"action": "accept", "content": {"x": value}}
    ).model_dump()["x"]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        pytest.param(int, 30.0, 30, id="whole-float"),
        pytest.param(int, "30", 30, id="integer-as-text"),
        pytest.param(int, "-30.0", -30, id="whole-float-as-text"),
        pytest.param(int, 2**60, 2**60, id="large-integer"),
        pytest.param(float, 1, 1.0, id="integer-for-a-number"),
        pytest.param(float, "1.5e3", 1500.0, id="number-as-text"),
        pytest.param(bool, "true", True, id="true-as-text"),
        pytest.param(bool, "false", False, id="false-as-text"),
        pytest.param(str, "30", "30", id="text-stays-text"),
        pytest.param(str, "true", "true", id="true-stays-text"),
        pytest.param(set[Literal["a"]], ["a", "a"], {"a"}, id="list-for-a-set"),
        pytest.param(list[Literal["a"]], [], [], id="nothing-chosen"),
    ],
)
def test_a_form_may_be_filled_in_with_text(annotation: Any, value: Any, expected: Any) -> None:
    """Strings and other kinds of numbers are converted."""
    result = read_one(annotation, value)
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        pytest.param(int, True, "Input should be a valid integer, got boolean", id="boolean-for-an-integer"),
        pytest.param(int, 1.5, "Input should be a valid integer, got number", id="half"),
        pytest.param(int, 1e300, "Input should be a valid integer, got number", id="float-beyond-exactness"),
        pytest.param(int, "1_000", "Input should be a valid integer, got string", id="python-integer"),
        pytest.param(int, "9" * 5000, "Input should be a valid integer, got string", id="endless-integer"),
        pytest.param(int, None, "Input should be a valid integer, got null", id="null"),
        pytest.param(float, True, "Input should be a valid number, got boolean", id="boolean-for-a-number"),
        pytest.param(float, "nan", "Input should be a valid number, got string", id="not-a-number"),
        pytest.param(float, "1e999", "must be a double-precision number", id="infinite-text"),
        pytest.param(float, 10**400, "must be a double-precision number", id="too-large"),
        pytest.param(bool, 1, "Input should be a valid boolean, got integer", id="integer-for-a-boolean"),
        pytest.param(bool, "yes", "Input should be a valid boolean, got string", id="word-for-a-boolean"),
        pytest.param(str, 5, "Input should be a valid string, got integer", id="integer-for-text"),
        pytest.param(str, ["a"], "Input should be a valid string, got array", id="list-for-text"),
        pytest.param(str, {"a": 1}, "must be a string, a number, a boolean or a list of strings", id="object"),
        pytest.param(str, "\ud800", "cannot be serialized to JSON", id="half-a-character"),
        pytest.param(date, 0, "Input should be a valid date, got integer", id="timestamp-for-a-date"),
        pytest.param(date, "86400", "must be a date in the form YYYY-MM-DD", id="timestamp-as-text"),
        pytest.param(datetime, "5", "must be a date in the form YYYY-MM-DD", id="seconds-as-text"),
        pytest.param(datetime, "2026-13-01T00:00:00Z", "Input should be a valid datetime", id="month-13"),
        pytest.param(Literal["a", "b"], "c", "Input should be 'a' or 'b'", id="no-such-choice"),
        pytest.param(Colour, "RED", "Input should be 'red' or 'blue'", id="name-for-a-value"),
        pytest.param(list[Literal["a"]], "a", "Input should be a valid array, got string", id="one-for-several"),
        pytest.param(list[Literal["a"]], [1], "must be a string, a number, a boolean or a list", id="list-of-numbers"),
        pytest.param(Annotated[float, Field(gt=0)], 0, "Input should be greater than 0", id="limit-not-in-the-form"),
        pytest.param(Annotated[str, Field(pattern="^a$")], "b", "String should match pattern", id="pattern"),
    ],
)
def test_a_wrong_value_is_told_by_its_field(annotation: Any, value: Any, problem: str) -> None:
    """The error contains the field and the expectation, but not the value."""
    with pytest.raises(InvalidAnswer) as caught:
        read_one(annotation, value)
    text = str(caught.value)
    assert text.startswith("Invalid answer: content")
    assert problem in text
    assert len(text) < 200
