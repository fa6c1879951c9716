"""Features that cannot be listed: they are rejected when they are registered, so lists never fail."""

from collections.abc import Callable
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, ToolRegistry, prompt, resource, tool
from axolotl_core.registry import PromptRegistry, ResourceRegistry
from axolotl_server import ServerHost, connect


class Container(containers.DeclarativeContainer):
    """A registry of each kind, with one feature."""

    tool_registry = providers.Singleton(ToolRegistry)
    prompt_registry = providers.Singleton(PromptRegistry)
    resource_registry = providers.Singleton(ResourceRegistry)
    tools = providers.List()
    prompts = providers.List()
    resources = providers.List()


def make_tool() -> Any:
    @tool
    async def greet(name: str) -> str:
        """Greet someone."""
        return f"Hello, {name}!"

    return greet


def make_prompt() -> Any:
    @prompt
    async def review(language: str) -> str:
        """Review code."""
        return language

    return review


def make_resource() -> Any:
    @resource("config://app")
    async def config() -> str:
        """The configuration."""
        return "{}"

    return config


def make_template() -> Any:
    @resource("users://{name}")
    async def user(name: str) -> str:
        """A user."""
        return name

    return user


WRONG = [
    ("meta", None, "meta must be a valid dictionary, not None"),
    ("meta", {"self": object()}, "cannot be listed: TypeError"),
    ("description", None, "description must be a valid string, not None"),
    ("title", 7, "title must be a valid string, not 7"),
    ("icons", None, "icons must be a valid tuple, not None"),
]
KINDS = [
    pytest.param(make_tool, "tool", id="tool"),
    pytest.param(make_prompt, "prompt", id="prompt"),
    pytest.param(make_resource, "resource", id="resource"),
    pytest.param(make_template, "resource", id="template"),
]


@pytest.mark.parametrize(("attribute", "value", "problem"), WRONG)
@pytest.mark.parametrize(("make", "kind"), KINDS)
async def test_startup(make: Callable[[], Any], kind: str, attribute: str, value: Any, problem: str) -> None:
    """A server with a feature that cannot be listed does not start, and the error names feature and attribute."""
    feature, container = make(), Container()
    setattr(feature, attribute, value)
    getattr(container, f"{kind}s").override(providers.Object([feature]))
    with pytest.raises(ConfigurationError, match=problem):
        await ServerHost(container).start()


@pytest.mark.parametrize(("attribute", "value", "problem"), WRONG)
@pytest.mark.parametrize(("make", "kind"), KINDS)
async def test_run_time(make: Callable[[], Any], kind: str, attribute: str, value: Any, problem: str) -> None:
    """A running server rejects such a feature, and its lists keep working."""
    feature, container = make(), Container()
    setattr(feature, attribute, value)
    async with connect(container) as client:
        with pytest.raises(ConfigurationError, match=problem):
            getattr(container, f"{kind}_registry")().register(feature)
        assert await client.list_tools() == []
        assert len(getattr(container, f"{kind}_registry")()) == 0


async def test_wrong_annotations() -> None:
    """The annotations of a tool have their own type."""
    greet = make_tool()
    greet.annotations = {"readOnlyHint": True}
    with pytest.raises(ConfigurationError, match="annotations must be an instance of ToolAnnotations, not"):
        ToolRegistry().register(greet)
