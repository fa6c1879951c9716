"""@prompt on methods: prompts and completers are bound to their object."""

from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import ConfigurationError, prompt, prompts_of, tool
from axolotl_core.prompts import FunctionPrompt
from tests.support.core.feature_calls import told


class Desk:
    """An object with prompts."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    @prompt(title="Greeting")
    def greet(self, to: str) -> str:
        """Greet somebody."""
        return f"{self.owner} greets {to}"

    @greet.completes("to")
    def friends(self, value: str, known: Mapping[str, str]) -> list[str]:
        return [f"{self.owner}'s {value}", *known]

    @prompt
    @staticmethod
    async def outer(text: str) -> str:
        return text.upper()

    @staticmethod
    @prompt
    def inner(text: str) -> str:
        return text.lower()

    @outer.completes("text")
    @staticmethod
    def texts(value: str) -> list[str]:
        return [value + "!"]

    @tool
    def work(self) -> str:
        return "no prompt"


class Corner(Desk):
    """Adds a prompt and replaces one."""

    @prompt
    async def leave(self) -> str:
        return f"{self.owner} leaves"

    @prompt(name="salute")
    def greet(self, to: str) -> str:
        return f"{self.owner} salutes {to}"


async def test_prompts_of_an_object_are_bound_to_it() -> None:
    """Every `@prompt` method is found, in the order of definition, and nothing else is."""
    ada, bob = Desk("Ada"), Corner("Bob")
    assert [found.name for found in prompts_of(ada)] == ["greet", "outer", "inner"]
    assert [found.name for found in prompts_of(bob)] == ["salute", "outer", "inner", "leave"]
    assert await told(prompts_of(ada)[0], to="Eve") == ["Ada greets Eve"]
    assert await told(prompts_of(bob)[0], to="Eve") == ["Bob salutes Eve"]
    assert (ada.greet("Eve"), prompts_of(ada)[0].title) == ("Ada greets Eve", "Greeting")


async def test_completers_of_a_method_know_the_object() -> None:
    """A completer that is a method is bound to the same object; an overriding prompt has none."""
    ada, bob = Desk("Ada"), Corner("Bob")
    assert await prompts_of(ada)[0].complete("to", "cat", {"x": "1"}) == ["Ada's cat", "x"]
    assert await prompts_of(bob)[0].complete("to", "cat", {}) == []
    assert ada.friends("dog", {}) == ["Ada's dog"]


async def test_static_methods_are_prompts_in_either_order_of_decorators() -> None:
    """They are called and completed without an object, also if they are async."""
    (_, outer, inner) = prompts_of(Desk("Ada"))
    assert (await told(outer, text="Ab"), await told(inner, text="Ab")) == (["AB"], ["ab"])
    assert (outer.execution, inner.execution) == ("loop", "thread")
    assert await outer.complete("text", "a", {}) == ["a!"]


def test_a_method_without_its_object_is_refused_when_it_is_compiled() -> None:
    """A method taken from the class instead of an object fails before the first call."""
    unbound: FunctionPrompt[..., Any] = Desk.greet
    with pytest.raises(ConfigurationError, match=r"greet is a method: register prompts_of\(instance\)"):
        unbound.argument_parser(coerce=True)
