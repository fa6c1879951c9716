"""Values that JSON has no number for."""

from math import inf, nan
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from axolotl_core.protocol.wire import json_writer


class Exact(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    number: float


class Usual(BaseModel):
    number: float | None = None


@pytest.mark.parametrize("number", [nan, inf, -inf])
@pytest.mark.parametrize("model", [Exact, Usual])
def test_nan_and_infinity_are_refused(model: Any, number: float) -> None:
    """They are refused however a model writes them: as null, or as a constant."""
    with pytest.raises(ValueError, match="JSON has no such number"):
        json_writer(TypeAdapter(model))(model(number=number))


def test_null_and_text_are_written() -> None:
    """A field without a value is null, and a text may be the name of a constant."""
    assert json_writer(TypeAdapter(Usual))(Usual()) == b'{"number":null}'
    assert json_writer(TypeAdapter(list[str | None]))(["NaN", None]) == b'["NaN",null]'
