"""The size of outputs before they are encoded."""

from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from axolotl_core.errors import ResultTooLarge
from axolotl_core.output import bounded, has_fixed_size


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Items(BaseModel):
    items: Iterable[int]


class Sum(BaseModel):
    total: Annotated[int, "unchanged"]
    share: float = 0.0


class Named(Sum):
    name: str


class Whole(BaseModel):
    part: Sum


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(deque(["x" * 50] * 3), id="deque"),
        pytest.param({"x" * 50} | {"y" * 50} | {"z" * 50}, id="set"),
        pytest.param(Open.model_validate({"more": "x" * 150}), id="extra-field"),
        pytest.param(bytearray(150), id="bytes"),
        pytest.param({str(number): 1 for number in range(25)}, id="members"),
        pytest.param([iter(["x" * 150])], id="iterator"),
    ],
)
def test_everything_in_an_output_counts(output: Any) -> None:
    """An output is refused if its parts are too large, whatever holds them."""
    with pytest.raises(ResultTooLarge):
        bounded(output, 110)


def test_iterators_become_lists_where_they_are() -> None:
    """Iterators are found at any depth of lists and dicts; those of models stay iterators, as their type says."""
    assert bounded([[iter([1, 2])], {"a": iter([3])}], 1000) == [[[1, 2]], {"a": [3]}]
    found = bounded(Items.model_construct(items=iter([1, 2])), 1000)
    assert list(found.items) == [1, 2]


@pytest.mark.parametrize("kind", [int, float, bool, type(None), Sum])
def test_small_values_need_not_be_measured(kind: Any) -> None:
    """Numbers, and models of numbers, are small whatever their value is."""
    assert has_fixed_size(kind)


@pytest.mark.parametrize("kind", [None, str, list[int], int | None, Annotated[int, []], Open, Items, Named, Whole])
def test_other_values_are_measured(kind: Any) -> None:
    """Values that may be large are measured, also in fields nobody declared."""
    assert not has_fixed_size(kind)
