"""@tool on methods: an object's tools are bound to that object."""

from typing import Any

import pytest

from axolotl_core import ConfigurationError, Context, tool, tools_of
from axolotl_core.tools.tool import FunctionTool
from tests.support.core.sample_tools import call


class Account:
    """An object with state and tools."""

    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.touched = False

    @tool(title="Balance")
    async def read_balance(self) -> int:
        """Read the balance."""
        return self.balance

    @tool
    def deposit(self, amount: int, context: Context) -> int:
        """Deposit money."""
        self.balance += amount
        return self.balance

    @property
    def risky(self) -> int:
        self.touched = True
        raise RuntimeError("must not be read")

    def not_a_tool(self) -> None: ...


class Savings(Account):
    """Adds a tool, overrides one and removes one."""

    @tool
    async def interest(self, percent: int) -> int:
        return self.balance * percent // 100

    @tool(name="look")
    async def read_balance(self) -> int:
        return -self.balance

    deposit = None  # type: ignore[assignment]


class Kit:
    """Tools that need no object."""

    @tool
    @staticmethod
    def outer(text: str) -> str:
        return text.upper()

    @staticmethod
    @tool
    def inner(text: str) -> str:
        return text.lower()


def test_tools_of_lists_methods_in_the_order_of_definition() -> None:
    """Every `@tool` method is found, those of the parent first."""
    assert [found.name for found in tools_of(Account(1))] == ["read_balance", "deposit"]
    assert [found.name for found in tools_of(Savings(1))] == ["look", "interest"]


def test_tools_of_reads_no_properties() -> None:
    """Looking for tools does not run the code of other attributes."""
    account = Account(1)
    tools_of(account)
    assert not account.touched


async def test_a_bound_tool_works_on_its_object() -> None:
    """Two objects have two sets of tools."""
    rich, poor = Account(100), Account(1)
    (_, deposit), (look, _) = tools_of(rich), tools_of(poor)
    assert await call(deposit, amount=5) == 105
    assert await call(look) == 1


def test_self_is_not_an_argument() -> None:
    """Callers see neither `self` nor the context."""
    (_, deposit) = tools_of(Account(1))
    assert list(deposit.input_schema["properties"]) == ["amount"]


def test_options_survive_binding() -> None:
    """The options of the decorator apply to the bound tool."""
    (look, _) = tools_of(Account(1))
    assert (look.title, look.description, look.execution) == ("Balance", "Read the balance.", "loop")


async def test_a_tool_method_can_be_called_like_a_method() -> None:
    """On an object and through the class, the method stays a method."""
    account = Account(1)
    assert account.deposit(2, Context()) == 3
    assert await account.read_balance() == 3
    assert await Account.read_balance(account) == 3


def test_a_method_without_its_object_is_refused_when_it_is_compiled() -> None:
    """A method taken from the class instead of an object fails before the first call."""
    unbound: FunctionTool[..., Any] = Account.read_balance
    with pytest.raises(ConfigurationError, match=r"read_balance is a method: register tools_of\(instance\)"):
        unbound.argument_parser(coerce=False)


async def test_static_methods_are_tools_in_either_order_of_decorators() -> None:
    """A static method is found, called and executed like a function."""
    found = tools_of(Kit())
    assert [each.name for each in found] == ["outer", "inner"]
    assert [await call(each, text="Ab") for each in found] == ["AB", "ab"]
    assert (Kit.outer("a"), Kit.inner("A")) == ("A", "a")


def test_a_class_method_is_refused() -> None:
    """A class method cannot be a tool; the error says what to use."""
    with pytest.raises(ConfigurationError, match="build: a class method cannot be a tool; use a static method"):

        class Odd:
            @tool
            @classmethod
            def build(cls, size: int) -> None: ...


def test_a_class_method_around_a_tool_is_refused() -> None:
    """With the decorators in the wrong order, the error contains the parameter."""
    with pytest.raises(ConfigurationError, match=r"build\(cls\) \(\S+:\d+\): annotate the parameter"):

        class Odd:
            @classmethod
            @tool
            def build(cls, size: int) -> None: ...


def test_a_function_may_have_a_parameter_called_self() -> None:
    """Only a function in a class body is a method."""

    @tool
    def free(self: int) -> int:
        return self

    assert list(free.input_schema["properties"]) == ["self"]


class Outer:
    """Has a class inside."""

    class Nested:
        @tool
        async def work(self, n: int) -> int:
            return n


async def test_methods_of_nested_classes_are_methods() -> None:
    """A class inside a class has tools as well."""
    (work,) = tools_of(Outer.Nested())
    assert await call(work, n=4) == 4
