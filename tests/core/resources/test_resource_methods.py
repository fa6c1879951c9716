"""@resource on methods: resources and completers are bound to their object."""

from typing import Any

import pytest

from axolotl_core import ConfigurationError, ResourceRegistry, resource, resources_of, tool
from axolotl_core.content import TextResource
from axolotl_core.resources.resource import FunctionResourceTemplate
from tests.support.core.feature_calls import URI, run, text_at


class Shelf:
    """An object with resources."""

    def __init__(self, label: str) -> None:
        self.label = label

    @resource("shelf://label", title="Label")
    def read_label(self) -> str:
        return self.label

    @resource("shelf://{number}")
    async def book(self, number: int) -> str:
        return f"{self.label} {number}"

    @book.completes("number")
    async def numbers(self, value: str) -> list[str]:
        return [self.label, value]

    @resource("shelf://static/{text}")
    @staticmethod
    async def outer(text: str) -> str:
        return text.upper()

    @staticmethod
    @resource("shelf://static")
    def inner() -> str:
        return "inner"

    @tool
    def work(self) -> str:
        return "no resource"


class Board(Shelf):
    """Replaces a resource and drops another."""

    @resource("shelf://label")
    def read_label(self) -> str:
        return f"board {self.label}"

    book = None  # type: ignore[assignment]


async def test_resources_of_an_object_are_bound_to_it() -> None:
    """Every `@resource` method is found, fixed or not, in the order of definition, and nothing else is."""
    label, book, outer, inner = resources_of(Shelf("A"))
    assert (label.title, await run(label)) == ("Label", (TextResource(URI, "A", "text/plain"),))
    assert [made.name for made in (label, book, outer, inner)] == ["read_label", "book", "outer", "inner"]
    assert isinstance(book, FunctionResourceTemplate)
    assert await text_at(book, "shelf://7") == "A 7"
    assert isinstance(outer, FunctionResourceTemplate)
    assert (await text_at(outer, "shelf://static/ab"), outer.execution) == ("AB", "loop")
    assert await run(inner) == (TextResource(URI, "inner", "text/plain"),)
    assert ResourceRegistry(resources_of(Shelf("B"))).try_get("shelf://{number}") is not None


async def test_subclasses_replace_and_drop_resources() -> None:
    """Subclasses can override and remove resources."""
    found = resources_of(Board("B"))
    assert [made.name for made in found] == ["read_label", "outer", "inner"]
    assert await run(found[0]) == (TextResource(URI, "board B", "text/plain"),)


async def test_completers_of_a_method_know_the_object() -> None:
    """A completer that is a method is bound to the same object."""
    shelf = Shelf("A")
    book = shelf.book
    assert isinstance(book, FunctionResourceTemplate)
    assert await book.complete("number", "7", {}) == ["A", "7"]
    assert (await book(7), await shelf.numbers("8")) == ("A 7", ["A", "8"])


@pytest.mark.parametrize("made", [Shelf.read_label, Shelf.book])
def test_a_method_without_its_object_is_refused_when_it_is_compiled(made: Any) -> None:
    """A method taken from the class instead of an object fails before the first call."""
    with pytest.raises(ConfigurationError, match=r"is a method: register resources_of\(instance\)"):
        made.argument_parser(coerce=True)
