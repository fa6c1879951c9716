"""Comparison of expected and actual messages."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ANY = "<any>"
_KEEPS = re.compile(r"<any:([a-z0-9]+)>")
_KEPT = re.compile(r'"<the:([a-z0-9]+)>"|<the:([a-z0-9]+)>')


def differences(expected: Any, actual: Any, path: str = "$") -> Iterator[str]:
    """List the differences between two JSON values; types matter, the order of members does not."""
    if expected == ANY or _kept_name(expected) is not None:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        yield from _member_differences(expected, actual, path)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (wanted, got) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(wanted, got, f"{path}[{index}]")
    elif isinstance(expected, str) and isinstance(actual, str) and ANY in expected:
        pattern = ".*".join(map(re.escape, expected.split(ANY)))
        if not re.fullmatch(pattern, actual, re.DOTALL):
            yield f"{path}: expected {expected!r}, got {actual!r}"
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path}: expected {expected!r}, got {actual!r}"


def _member_differences(expected: dict[str, Any], actual: dict[str, Any], path: str) -> Iterator[str]:
    for key in expected.keys() - actual.keys():
        yield f"{path}.{key}: missing"
    for key in actual.keys() - expected.keys():
        yield f"{path}.{key}: not expected, got {actual[key]!r}"
    for key in expected.keys() & actual.keys():
        yield from differences(expected[key], actual[key], f"{path}.{key}")


def same(expected: Any, actual: Any) -> bool:
    """Return whether two messages match; replies of a batch may have any order."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return paired(expected, actual)
    return not any(differences(expected, actual))


def paired(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Return whether each expected message matches a different actual message."""
    if not expected:
        return not actual
    first, rest = expected[0], expected[1:]
    return any(
        same(first, candidate) and paired(rest, [*actual[:index], *actual[index + 1 :]])
        for index, candidate in enumerate(actual)
    )


def kept(expected: Any, actual: Any) -> Iterator[tuple[str, Any]]:
    """Return the values of the actual message that the expected message names."""
    name = _kept_name(expected)
    if name is not None:
        yield name, actual
    elif isinstance(expected, dict):
        for key, value in expected.items():
            yield from kept(value, actual[key])
    elif isinstance(expected, list):
        for value, came in zip(expected, actual, strict=True):
            yield from kept(value, came)


def recalled(text: str, values: Mapping[str, Any]) -> str:
    """Replace names with kept values in the text of a message."""

    def value_of(match: re.Match[str]) -> str:
        whole, part = match.groups()
        return json.dumps(values[whole]) if whole else json.dumps(str(values[part]))[1:-1]

    return _KEPT.sub(value_of, text)


def _kept_name(expected: Any) -> str | None:
    match = _KEEPS.fullmatch(expected) if isinstance(expected, str) else None
    return None if match is None else match[1]
