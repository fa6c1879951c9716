"""Arguments from the words of a command line."""

from typing import Any

import pytest

from axolotl_cli.calling.request import read_arguments
from axolotl_core.errors import ConfigurationError

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "choice": {"$ref": "#/$defs/Choice"},
        "level": {"enum": ["1", "2"]},
        "number": {"type": "integer"},
        "several": {"type": ["array", "null"]},
        "free": {},
    },
    "$defs": {"Choice": {"type": "string", "enum": ["true", "false"]}},
}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text={}", "{}"),
        ("maybe=null", "null"),
        ("choice=true", "true"),
        ("level=1", "1"),
        ("number=5", 5),
        ("number=five", "five"),
        ("several=[1, 2]", [1, 2]),
        ("free=true", True),
        ("free=plain text", "plain text"),
        ("unknown=1.5", 1.5),
    ],
)
def test_values(word: str, expected: Any) -> None:
    """A value is JSON if it can be parsed, and text if the schema says so."""
    [value] = read_arguments([word], SCHEMA).values()
    assert value == expected


def test_nothing() -> None:
    """Without words there are no arguments."""
    assert read_arguments([], SCHEMA) == {}


def test_undecoded_words() -> None:
    """A word that the locale could not decode is decoded as UTF-8."""
    word = "text=für 𝄞".encode().decode("ascii", "surrogateescape")
    assert read_arguments([word], SCHEMA) == {"text": "für 𝄞"}


def test_twice() -> None:
    """A key that is given twice is an error."""
    with pytest.raises(ConfigurationError, match="'text' is given twice"):
        read_arguments(['{"text": "a"}', "text=b"], SCHEMA)
