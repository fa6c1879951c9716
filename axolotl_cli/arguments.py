"""From the words of a command line to the arguments of a tool or a prompt."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from axolotl_cli.outline import resolve
from axolotl_core.errors import ConfigurationError

__all__ = ["as_text", "read_arguments", "read_texts"]

_TEXTS: Final = {"additionalProperties": {"type": "string"}}


def read_arguments(words: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read JSON objects and `key=value` pairs; the schema says which values are text.

    Raises:
        ConfigurationError: if a word is neither, or a key is given twice.
    """
    arguments: dict[str, Any] = {}
    for word in map(as_text, words):
        for key, value in _read(word, schema):
            if key in arguments:
                raise ConfigurationError(f"The argument {key!r} is given twice")
            arguments[key] = value
    return arguments


def read_texts(words: Sequence[str]) -> dict[str, str]:
    """Read the same words as texts, which is all that a prompt takes; values of JSON objects are written as JSON.

    Raises:
        ConfigurationError: if a word is neither, or a key is given twice.
    """
    arguments = read_arguments(words, _TEXTS)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}


def as_text(word: str) -> str:
    """Read a word of the command line as UTF-8, whatever the locale made of it."""
    return os.fsencode(word).decode("utf-8", "replace")


def _read(word: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if word.lstrip().startswith("{"):
        yield from _read_object(word).items()
        return
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"{word!r} is no argument: write key=value, or a JSON object")
    unnamed = schema.get("additionalProperties", {})
    yield key, _read_value(value, schema.get("properties", {}).get(key, unnamed), schema)


def _read_object(word: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(word)
    except ValueError as error:
        raise ConfigurationError(f"The arguments are no JSON object: {error}") from error
    return value


def _read_value(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "string" in _types(schema, root):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """Collect the JSON types that a schema admits."""
    schema = resolve(schema, root)
    declared = schema.get("type", [])
    types = {declared} if isinstance(declared, str) else set(declared)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(keyword, ()):
            types |= _types(part, root)
    return types | {"string" for value in schema.get("enum", ()) if isinstance(value, str)}
