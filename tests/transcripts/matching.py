"""Comparing what was expected with what came."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

ANY = "<any>"


def differences(expected: Any, actual: Any, path: str = "$") -> Iterator[str]:
    """Say where two JSON values differ; types count, the order of members does not."""
    if expected == ANY:
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
    """Tell whether two messages match; the replies of a batch may stand in any order."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return paired(expected, actual)
    return not any(differences(expected, actual))


def paired(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Tell whether each expected message has one of its own among those that came."""
    if not expected:
        return not actual
    first, rest = expected[0], expected[1:]
    return any(
        same(first, candidate) and paired(rest, [*actual[:index], *actual[index + 1 :]])
        for index, candidate in enumerate(actual)
    )
