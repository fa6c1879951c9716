"""Completions: the limit of suggestions, and suggestions from types."""

from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import Completion
from axolotl_core.features.completion import MAX_VALUES, Completer, bound_to, choices_in, completion_of, run_completer

MANY = [str(number) for number in range(150)]


@pytest.mark.parametrize(
    ("output", "completion"),
    [
        pytest.param(["a", "b"], Completion(("a", "b")), id="list"),
        pytest.param((), Completion(()), id="nothing"),
        pytest.param(Completion(["a"], 7, True), Completion(("a",), 7, True), id="said"),
        pytest.param(MANY[:100], Completion(tuple(MANY[:100])), id="full"),
        pytest.param(MANY, Completion(tuple(MANY[:100]), 150, True), id="too-many"),
        pytest.param(Completion(MANY, 900), Completion(tuple(MANY[:100]), 900, True), id="total-known"),
        pytest.param((text for text in MANY), Completion(tuple(MANY[:100]), 150, True), id="generator"),
    ],
)
def test_suggestions_are_limited(output: Any, completion: Completion) -> None:
    """At most 100 suggestions are sent, with a hint that there are more."""
    assert completion_of(output) == completion
    assert len(completion_of(output).values) <= MAX_VALUES


@pytest.mark.parametrize("output", ["abc", "", Completion("abc")])
def test_a_string_is_not_a_list(output: Any) -> None:
    """A completer that returns a string raises TypeError."""
    with pytest.raises(TypeError, match="a completer returns a list of strings, not a string"):
        completion_of(output)


@pytest.mark.parametrize(
    ("schema", "value", "suggested"),
    [
        pytest.param({"enum": ["red", "green"]}, "", ["red", "green"], id="enum"),
        pytest.param({"enum": ["red", "green"]}, "RE", ["red", "green"], id="beginning-first"),
        pytest.param({"enum": ["green", "red"]}, "re", ["red", "green"], id="inside-after"),
        pytest.param({"enum": ["red", None]}, "", ["red"], id="null-is-no-text"),
        pytest.param({"const": "only"}, "o", ["only"], id="const"),
        pytest.param({"const": None}, "", [], id="null"),
        pytest.param({"type": "boolean"}, "f", ["false"], id="boolean"),
        pytest.param({"anyOf": [{"enum": ["a"]}, {"type": "boolean"}]}, "", ["a", "true", "false"], id="union"),
        pytest.param({"oneOf": [{"const": "s", "title": "Small"}]}, "", ["s"], id="titled"),
        pytest.param({"type": "array", "items": {"enum": ["a", "b"]}}, "b", ["b"], id="items"),
        pytest.param({"type": "array"}, "", [], id="any-items"),
        pytest.param({"enum": ["red"]}, "x", [], id="none-fits"),
        pytest.param({"type": "string"}, "", [], id="text"),
        pytest.param({}, "", [], id="anything"),
    ],
)
def test_choices_are_found_in_a_schema(schema: dict[str, Any], value: str, suggested: list[str]) -> None:
    """Suggestions contain the typed text, ignoring case; those that begin with it come first."""
    assert choices_in(schema, value) == suggested


def plain(value: str) -> list[str]:
    return [value]


async def waiting(value: str) -> list[str]:
    return [value]


def knowing(value: str, known: Mapping[str, str]) -> list[str]:
    return [value, *known]


async def knowing_by_name(value: str, *, known: Mapping[str, str]) -> list[str]:
    return [value, *known]


class Shelf:
    """Has completers of every kind."""

    label = "shelf"

    def method(self, value: str) -> list[str]:
        return [self.label, value]

    @staticmethod
    def static(value: str) -> list[str]:
        return [value]

    def __call__(self, value: str, known: Mapping[str, str]) -> list[str]:
        return [self.label, *known]


@pytest.mark.parametrize(
    ("completer", "values"),
    [
        pytest.param(plain, ["v"], id="plain"),
        pytest.param(waiting, ["v"], id="async"),
        pytest.param(knowing, ["v", "k"], id="known"),
        pytest.param(knowing_by_name, ["v", "k"], id="known-by-name"),
        pytest.param(Shelf(), ["shelf", "k"], id="object"),
        pytest.param(Shelf().method, ["shelf", "v"], id="method"),
    ],
)
async def test_completers_receive_known_arguments_on_request(completer: Completer, values: list[str]) -> None:
    """Completers with a parameter `known` receive the other arguments."""
    assert await run_completer(completer, "v", {"k": "1"}) == values


@pytest.mark.parametrize(
    ("completer", "values"),
    [
        pytest.param(Shelf.method, ["shelf", "v"], id="method"),
        pytest.param(Shelf.static, ["v"], id="static"),
        pytest.param(vars(Shelf)["static"], ["v"], id="static-in-the-body"),
        pytest.param(plain, ["v"], id="function"),
    ],
)
async def test_only_methods_are_bound(completer: Completer, values: list[str]) -> None:
    """A completer outside the class, or a static one, needs no object."""
    assert await run_completer(bound_to(Shelf(), completer), "v", {}) == values
