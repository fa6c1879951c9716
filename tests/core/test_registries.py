"""Registries of prompts and resources: names, URIs and updates."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import (
    ConfigurationError,
    Context,
    IPrompt,
    IResource,
    IResourceTemplate,
    NoArguments,
    PromptRegistry,
    ResourceRegistry,
    ToolRegistry,
    prompt,
    tool,
)
from axolotl_core.registry import Registry
from tests.support.core.sample_tools import Named as NamedTool


class NamedPrompt(IPrompt[NoArguments]):
    def __init__(self, name: str) -> None:
        self.name = name

    async def render(self, arguments: NoArguments, context: Context) -> str:
        return ""


class At(IResource):
    """A resource at any URI; names need not differ."""

    name = "same"

    def __init__(self, uri: str) -> None:
        self.uri = uri

    async def read(self, context: Context) -> str:
        return ""


class Variables(BaseModel):
    x: str


class Under(IResourceTemplate[Variables]):
    name = "same"

    def __init__(self, uri_template: str) -> None:
        self.uri_template = uri_template

    async def read(self, variables: Variables, context: Context) -> str:
        return ""


class Kind:
    """A kind of registry, and how its items are made."""

    def __init__(self, registry: type[Registry[Any]], make: Callable[[str], Any]) -> None:
        self.registry = registry
        self.make = make

    def named(self, letters: str) -> list[Any]:
        """Make an item of each letter."""
        return [self.make(f"test:{letter}") for letter in letters]


KINDS = [
    pytest.param(Kind(ToolRegistry, NamedTool), id="tools"),
    pytest.param(Kind(PromptRegistry, NamedPrompt), id="prompts"),
    pytest.param(Kind(ResourceRegistry, At), id="resources"),
]
every_kind = pytest.mark.parametrize("kind", KINDS)


def letters(registry: Registry[Any]) -> str:
    """Return the registered names in order."""
    return "".join(registry.name_of(item)[-1] for item in registry.get_all())


@every_kind
def test_items_are_found_listed_and_counted(kind: Kind) -> None:
    """The order is that of registration."""
    items = kind.named("zam")
    registry = kind.registry(items)
    assert registry.get_all() == tuple(items)
    assert registry.try_get("test:a") is items[1]
    assert ("test:a" in registry, "test:x" in registry, None in registry, len(registry)) == (True, False, False, 3)


@every_kind
def test_the_first_of_a_name_wins(kind: Kind) -> None:
    """A taken name is not replaced, alone or in a range."""
    first, second, third = kind.named("aab")
    registry = kind.registry([first])
    heard: list[str] = []
    registry.on_change(lambda: heard.append(letters(registry)))
    assert not registry.register(second)
    assert not registry.register(first)
    assert registry.register_range([second, third, third]) == 1
    assert registry.get_all() == (first, third)
    assert heard == ["ab"]


@every_kind
def test_what_is_removed_makes_room(kind: Kind) -> None:
    """Removing returns how many existed, and frees the name."""
    registry = kind.registry(kind.named("abc"))
    assert registry.unregister("test:a")
    assert not registry.unregister("test:a")
    assert registry.unregister_range(["test:a", "test:c"]) == 1
    assert registry.register(kind.make("test:a"))
    assert letters(registry) == "ba"


@every_kind
def test_a_range_is_added_whole_or_not_at_all(kind: Kind) -> None:
    """If one item is invalid or the iterator fails, nothing is added."""

    def failing() -> Iterator[Any]:
        yield from kind.named("b")
        raise RuntimeError("half-way")

    registry = kind.registry(kind.named("a"))
    with pytest.raises(ConfigurationError):
        registry.register_range([*kind.named("b"), "no feature"])
    with pytest.raises(RuntimeError, match="half-way"):
        registry.register_range(failing())
    assert letters(registry) == "a"


@every_kind
def test_a_listener_that_refuses_undoes_the_change(kind: Kind) -> None:
    """Listeners that ran before the failure see the old features again."""
    registry = kind.registry(kind.named("a"))
    seen: list[str] = []
    registry.on_change(lambda: seen.append(letters(registry)))

    def refuse() -> None:
        raise ConfigurationError("not this one")

    take_off = registry.on_change(refuse)
    with pytest.raises(ConfigurationError, match="not this one"):
        registry.register_range(kind.named("bc"))
    with pytest.raises(ConfigurationError, match="not this one"):
        registry.unregister("test:a")
    assert (seen, letters(registry)) == (["abc", "a", "", "a"], "a")
    take_off()
    assert registry.register(kind.make("test:d"))
    assert seen[-1] == "ad"


@pytest.mark.parametrize(("declared", "asked"), [("review", "REVIEW"), ("Größe", "GRÖSSE"), ("getUser", "getuser")])
def test_prompts_are_found_in_any_case(declared: str, asked: str) -> None:
    """A name keeps its spelling, and another spelling of it is the same name."""
    registry = PromptRegistry([NamedPrompt(declared)])
    assert asked in registry
    assert not registry.register(NamedPrompt(asked))
    assert [item.name for item in registry.get_all()] == [declared]
    assert registry.unregister(asked)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a://B", "a://b"), ("a://b", "a://b/"), ("a://b/c", "a://b%2Fc"), ("a://ß", "a://ss")],
)
def test_uris_that_differ(one: str, other: str) -> None:
    """URIs with different canonical forms are different names."""
    registry = ResourceRegistry([At(one)])
    assert other not in registry
    assert registry.register(At(other))


@pytest.mark.parametrize(
    ("one", "other"), [("a://%41", "a://A"), ("A://b", "a://b"), ("a://%c3%9f", "a://ß"), ("a://b%2fc", "a://b%2Fc")]
)
def test_equivalent_uris(one: str, other: str) -> None:
    """URIs with the same canonical form are one name, which keeps its spelling."""
    registry = ResourceRegistry([At(one)])
    assert other in registry
    assert not registry.register(At(other))
    assert [item.uri for item in registry.get_all() if isinstance(item, At)] == [one]
    assert registry.unregister(other)


def test_resources_and_templates_stand_in_one_registry() -> None:
    """A template is identified by its URI template."""
    fixed, template = At("a://b"), Under("a://{x}")
    registry = ResourceRegistry([template, fixed])
    assert registry.get_all() == (template, fixed)
    assert registry.try_get("a://{x}") is template
    assert registry.try_get("a://c") is None
    assert not registry.register(Under("a://{x}"))


@prompt
def a_prompt() -> str:
    return ""


@tool
def a_tool() -> str:
    return ""


@pytest.mark.parametrize(
    ("registry", "item", "text"),
    [
        pytest.param(PromptRegistry, a_tool, "is not a prompt: subclass IPrompt or use @prompt", id="tool-as-prompt"),
        pytest.param(ToolRegistry, a_prompt, "is not a tool: subclass ITool or use @tool", id="prompt-as-tool"),
        pytest.param(ResourceRegistry, a_prompt, "is not a resource: subclass IResource", id="prompt-as-resource"),
        pytest.param(PromptRegistry, NamedPrompt, "register an instance, not the class", id="class"),
    ],
)
def test_each_registry_takes_its_own_kind(registry: type[Registry[Any]], item: Any, text: str) -> None:
    """Features of another kind are refused with a hint."""
    with pytest.raises(ConfigurationError, match=text):
        registry([item])


def test_updates_are_told_to_those_who_listen() -> None:
    """Each listener receives each updated URI until it is removed."""
    registry = ResourceRegistry([At("a://b")])
    first: list[str] = []
    second: list[str] = []
    take_off = registry.on_update(first.append)
    registry.on_update(second.append)
    registry.updated("a://b")
    take_off()
    registry.updated("a://made")
    assert (first, second) == (["a://b"], ["a://b", "a://made"])


def test_updates_and_changes_are_different_news() -> None:
    """Updates and changes of the list are separate."""
    registry = ResourceRegistry()
    changes: list[int] = []
    updates: list[str] = []
    registry.on_change(lambda: changes.append(len(registry)))
    registry.on_update(updates.append)
    registry.register(At("a://b"))
    assert (changes, updates) == ([1], [])
    registry.updated("a://b")
    assert (changes, updates) == ([1], ["a://b"])


def test_a_listener_of_updates_may_take_itself_off() -> None:
    """A listener that removes itself does not disturb the others."""
    registry = ResourceRegistry()
    heard: list[str] = []

    def once(uri: str) -> None:
        heard.append(f"once {uri}")
        take_off()

    take_off = registry.on_update(once)
    registry.on_update(lambda uri: heard.append(f"always {uri}"))
    registry.updated("a:1")
    registry.updated("a:2")
    assert heard == ["once a:1", "always a:1", "always a:2"]
