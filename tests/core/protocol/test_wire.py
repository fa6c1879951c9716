"""Outgoing messages."""

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from axolotl_core.errors import InvalidParams, MethodNotFound, UnsupportedVersion
from axolotl_core.protocol.wire import encode, error_message, json_text, notification


def test_an_error_without_an_id_has_no_id_key() -> None:
    """An id that could not be read is left out, not null."""
    assert error_message(None, InvalidParams("bad"), -32602) == (
        b'{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad"}}'
    )


@pytest.mark.parametrize(
    ("request_id", "written"),
    [
        pytest.param(1, b"1", id="integer"),
        pytest.param("1", b'"1"', id="text-of-digits"),
        pytest.param(0, b"0", id="zero"),
        pytest.param("", b'""', id="empty-text"),
        pytest.param('a"\n', b'"a\\"\\n"', id="text-to-escape"),
        pytest.param(-(2**53) + 1, b"-9007199254740991", id="smallest"),
    ],
)
def test_an_id_keeps_its_json_type(request_id: int | str, written: bytes) -> None:
    """`1` and `"1"` are different IDs, and falsy IDs are valid."""
    message = error_message(request_id, MethodNotFound("x"), -32601)
    assert b'"id":%b,' % written in message
    assert msgspec.json.decode(message)["id"] == request_id


def test_the_code_is_that_of_the_era() -> None:
    """The caller chooses the code, the error its text."""
    decoded = msgspec.json.decode(error_message(1, MethodNotFound("x"), -32602))
    assert decoded["error"] == {"code": -32602, "message": "x"}


def test_an_error_carries_its_data() -> None:
    """Data is sent where there is some."""
    decoded = msgspec.json.decode(error_message(1, UnsupportedVersion("x", ["a"]), -32022))
    assert decoded["error"]["data"] == {"supported": ["a"], "requested": "x"}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        pytest.param(None, b'{"jsonrpc":"2.0","method":"n"}', id="without-params"),
        pytest.param({}, b'{"jsonrpc":"2.0","method":"n","params":{}}', id="empty-params"),
        pytest.param({"a": 1}, b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}', id="params"),
    ],
)
def test_a_notification_has_no_id(params: dict[str, Any] | None, expected: bytes) -> None:
    """Params are sent where there are some, an id never."""
    assert notification("n", params) == expected


class Point(BaseModel):
    x: float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": [1, None, True]}, b'{"a":[1,null,true]}', id="json"),
        pytest.param(Point(x=1.5), b'{"x":1.5}', id="model"),
        pytest.param([Point(x=1.5)], b'[{"x":1.5}]', id="models"),
        pytest.param("ü", '"ü"'.encode(), id="text"),
    ],
)
def test_any_value_of_a_tool_becomes_json(value: Any, expected: bytes) -> None:
    """Models and plain values are encoded in the same way."""
    assert json_text(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(object(), "serialize", id="object"),
        pytest.param([1.5, float("nan")], "1 is nan, and JSON has no such number", id="not-a-number"),
        pytest.param({"a": Point(x=float("-inf"))}, "a.x is -inf", id="infinity"),
    ],
)
def test_a_value_without_json_form_raises(value: Any, message: str) -> None:
    """A value that cannot be serialized raises an error."""
    with pytest.raises(ValueError, match=message):
        json_text(value)


def test_encode_writes_no_spaces() -> None:
    """A message is one compact line."""
    assert encode({"a": "x\ny", "b": [1, 2]}) == b'{"a":"x\\ny","b":[1,2]}'
