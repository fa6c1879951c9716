"""Advice on how to make tools cheaper for models, with the bytes that each change saves."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from axolotl_core.protocol.wire import encode, encode_sorted

_LONG_TOOL_TEXT: Final = 500
_LONG_TEXT: Final = 200
"""Descriptions of tools and of arguments that are longer are worth a look, in bytes."""
_LARGE_ENUM: Final = 150
_REPEATED: Final = 100
"""The smallest part of a schema, in bytes, that is worth a definition of its own."""
_MIN_SAVED: Final = 20


class Advice(msgspec.Struct, frozen=True):
    """A possible improvement of a tool."""

    tool: str
    place: str
    """Where in the definition, as a JSON pointer."""
    message: str
    saved_bytes: int


def advice_for(definition: Mapping[str, Any], *, is_reachable: bool) -> list[Advice]:
    """Find possible improvements of a tool, the largest first."""
    name = definition["name"]
    if not is_reachable:
        size = len(encode(definition))
        return [Advice(name, "", "no rule allows anybody to use it: remove it, or add a rule", size)]
    found = [*_long_texts(name, definition), *_in_schema(name, definition["inputSchema"])]
    worthwhile = [one for one in found if one.saved_bytes >= _MIN_SAVED]
    return sorted(worthwhile, key=lambda one: (-one.saved_bytes, one.place))


def _long_texts(name: str, definition: Mapping[str, Any]) -> Iterator[Advice]:
    excess = len(definition["description"].encode()) - _LONG_TOOL_TEXT
    if excess > 0:
        message = f"the description has {excess + _LONG_TOOL_TEXT} bytes: {_LONG_TOOL_TEXT} are enough for most tools"
        yield Advice(name, "/description", message, excess)


def _in_schema(name: str, schema: Mapping[str, Any]) -> Iterator[Advice]:
    yield from _repetitions(name, schema)
    for place, key, node in _nodes(schema, "/inputSchema", ""):
        title = node.get("title")
        if isinstance(title, str) and key and _letters(title) == _letters(key):
            saved = len(encode({"title": title})) - 1
            yield Advice(name, f"{place}/title", f"the title repeats the name {key}: leave it out", saved)
        text = node.get("description")
        if isinstance(text, str) and (excess := len(text.encode()) - _LONG_TEXT) > 0:
            message = f"the description has {excess + _LONG_TEXT} bytes: {_LONG_TEXT} are enough for most arguments"
            yield Advice(name, f"{place}/description", message, excess)
        values = node.get("enum")
        if isinstance(values, list) and (size := len(encode(values))) > _LARGE_ENUM:
            message = f"{len(values)} values are listed: accept a string, and suggest values in the error or a resource"
            yield Advice(name, f"{place}/enum", message, size)


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _repetitions(name: str, schema: Mapping[str, Any]) -> Iterator[Advice]:
    """Find equal parts, the largest first; parts of a repeated part are not counted again."""
    parts: dict[bytes, list[str]] = {}
    for place, _, node in _nodes(schema, "/inputSchema", ""):
        parts.setdefault(encode_sorted(node), []).append(place)
    covered: Counter[str] = Counter()
    for data, places in sorted(parts.items(), key=lambda item: -len(item[0])):
        fresh = [place for place in places if not any(place.startswith(f"{other}/") for other in covered)]
        if len(fresh) < 2 or len(data) < _REPEATED:
            continue
        covered.update(fresh)
        saved = (len(fresh) - 1) * len(data)
        message = f"the same {len(data)} bytes occur {len(fresh)} times: share a definition"
        yield Advice(name, fresh[0], message, saved)


def _nodes(schema: Any, place: str, key: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Find all schemas, each with its place and the name of its property."""
    if not isinstance(schema, Mapping):
        return
    yield place, key, schema
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs", "patternProperties") and isinstance(value, Mapping):
            for name, child in value.items():
                yield from _nodes(child, f"{place}/{keyword}/{name}", name)
        elif keyword in ("items", "additionalProperties", "not"):
            yield from _nodes(value, f"{place}/{keyword}", "")
        elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            for index, child in enumerate(value):
                yield from _nodes(child, f"{place}/{keyword}/{index}", "")
