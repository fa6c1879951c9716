"""Activations and their namespaces."""

import pytest

from axolotl_core import ConfigurationError, tool
from axolotl_examples.hub import Container
from axolotl_examples.hub.mounting import NamespacedNames, mount
from axolotl_server import ServerHost, connect


class Greeter:
    @tool
    async def greet(self, name: str) -> str:
        """Greet someone."""
        return f"Hello, {name}!"

    @staticmethod
    @tool
    async def wave() -> str:
        """Wave."""
        return "👋"


def test_mount() -> None:
    """Every tool method gets the namespace, and an object can be mounted more than once."""
    greeter = Greeter()
    assert [mounted.name for mounted in mount("a", greeter)] == ["a.greet", "a.wave"]
    assert [mounted.name for mounted in mount("b", greeter)] == ["b.greet", "b.wave"]


@pytest.mark.parametrize("name", ["a.b", "a.b.c", "A.b-c"])
def test_good_names(name: str) -> None:
    """A valid name has a namespace, a dot and a method."""
    assert NamespacedNames().fault_of(name) is None


async def test_mounted_later() -> None:
    """An activation that is mounted while the hub runs appears in the directory."""
    container = Container()
    async with connect(container) as client:
        container.tool_registry().register_range(mount("greeter", Greeter()))
        assert (await client.call("hub.activations")).structured == ["conversation", "claudecode", "hub", "greeter"]
        methods = await client.call("hub.methods", {"namespace": "greeter"})
        assert [method["name"] for method in methods.structured] == ["greeter.greet", "greeter.wave"]
        assert (await client.call("greeter.greet", {"name": "Ada"})).text == "Hello, Ada!"


async def test_namespace_in_any_case() -> None:
    """The directory finds a namespace in any case, as tools are found, and returns the declared names."""
    async with connect(Container()) as client:
        methods = await client.call("HUB.Methods", {"namespace": "Hub"})
    assert [method["name"] for method in methods.structured] == ["hub.activations", "hub.methods"]


async def test_unknown_namespace() -> None:
    """The directory reports an unknown namespace."""
    async with connect(Container()) as client:
        answer = await client.call("hub.methods", {"namespace": "conv"})
    assert (answer.is_error, answer.text) == (True, "Activation 'conv' not found")


async def test_denied_methods() -> None:
    """The directory does not show what the rules hide from the caller."""
    rules = [
        {"name": "no chats", "effect": "deny", "what": {"names": ["conversation.*", "claudecode.chat"]}},
        {"name": "rest", "effect": "allow"},
    ]
    async with connect(Container(), settings={"authorization": {"rules": rules}}) as client:
        activations = await client.call("hub.activations")
        hidden = await client.call("hub.methods", {"namespace": "conversation"})
        shown = await client.call("hub.methods", {"namespace": "claudecode"})
    assert activations.structured == ["claudecode", "hub"]
    assert (hidden.is_error, hidden.text) == (True, "Activation 'conversation' not found")
    assert [method["name"] for method in shown.structured] == ["claudecode.history", "claudecode.forget"]


async def test_tool_without_a_namespace() -> None:
    """A tool without a namespace is rejected, and the hub keeps working."""
    container = Container()
    async with ServerHost(container) as host:
        before = container.tool_registry().get_all()
        with pytest.raises(ConfigurationError, match="Invalid tool name format: 'greet'"):
            container.tool_registry().register(Greeter().greet)
        assert container.tool_registry().get_all() == before
        assert len(host.assembly.tools.bindings()) == len(before)
