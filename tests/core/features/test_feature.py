"""IFeature: the base of tools, prompts and resources."""

import re
from collections.abc import AsyncIterator, Callable
from functools import wraps
from types import new_class
from typing import Any

import pytest

from axolotl_core import (
    ConfigurationError,
    Context,
    IPrompt,
    IResource,
    IResourceTemplate,
    IStreamTool,
    ITool,
    NoArguments,
    PromptRegistry,
    ResourceRegistry,
    ToolRegistry,
    prompt,
    resource,
    tool,
)
from axolotl_core.errors import DefinitionError, OutputError
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec, Limits
from axolotl_core.prompts import check_prompt
from axolotl_core.protocol.identity import Icon
from axolotl_core.registry import Registry
from tests.support.core.feature_calls import run


class Tool(ITool[NoArguments, str]):
    name = "x"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return ""


class Prompt(IPrompt[NoArguments]):
    name = "x"

    async def render(self, arguments: NoArguments, context: Context) -> str:
        return ""


class Resource(IResource):
    name = "x"
    uri = "a://b"

    async def read(self, context: Context) -> str:
        return ""


def of_one(name: str) -> str:
    return name


def of_none() -> str:
    return ""


DECORATORS: list[Callable[..., Any]] = [
    lambda **options: tool(**options)(of_none),
    lambda **options: prompt(**options)(of_none),
    lambda **options: resource("a://b", **options)(of_none),
    lambda **options: resource("a://{name}", **options)(of_one),
]
FEATURES: list[IFeature] = [Tool(), Prompt(), Resource(), *(decorate() for decorate in DECORATORS)]
REGISTRIES: list[tuple[Registry[Any], IFeature]] = [
    (ToolRegistry(), Tool()),
    (PromptRegistry(), Prompt()),
    (ResourceRegistry(), Resource()),
]


def kind_of(value: object) -> str:
    """Name a feature in the list of tests."""
    return type(value).__name__


@pytest.mark.parametrize("interface", [IFeature, ITool, IPrompt, IResource, IResourceTemplate])
def test_an_interface_cannot_be_made(interface: Any) -> None:
    """Each leaves something to be written."""
    assert issubclass(interface, IFeature)
    with pytest.raises(TypeError, match="abstract"):
        interface()


@pytest.mark.parametrize("feature", FEATURES, ids=kind_of)
def test_every_kind_has_the_same_attributes(feature: IFeature) -> None:
    """All attributes have defaults."""
    assert isinstance(feature, IFeature)
    assert (feature.title, feature.icons, feature.meta, feature.tags) == (None, (), {}, frozenset())
    assert (feature.timeout_seconds, feature.max_concurrency) == (None, None)
    assert feature.execution in ("loop", "thread")


@pytest.mark.parametrize("decorate", DECORATORS)
def test_every_decorator_takes_the_same_options(decorate: Callable[..., Any]) -> None:
    """Each option is the attribute of its name."""
    options: dict[str, Any] = {
        "name": "own",
        "description": "SourcedValue",
        "title": "Own",
        "icons": (Icon("i.png"),),
        "meta": {"list": [1]},
        "tags": frozenset({"a"}),
        "timeout_seconds": 2.5,
        "max_concurrency": 3,
        "execution": "loop",
    }
    feature = decorate(**options)
    assert {name: getattr(feature, name) for name in options} == options


@pytest.mark.parametrize("feature", FEATURES, ids=kind_of)
def test_every_kind_can_be_specified(feature: IFeature) -> None:
    """Layers see all of them in the same way."""
    spec = FeatureSpec(feature, "prompt", feature.name, Limits(1.0, None, feature.execution, False), None)
    assert (spec.feature, spec.name) == (feature, feature.name)


@pytest.mark.parametrize("name", ["x", "get_user", "a.b-c/d", "größe", "two words", "x" * 128])
def test_a_name_may_be_any_line_of_text(name: str) -> None:
    """Stricter rules for names belong to the server."""
    feature = Prompt()
    feature.name = name
    check_prompt(feature)


@pytest.mark.parametrize(
    "name",
    ["", None, 5, " x", "x ", "a\nb", "a\x00", "a\u200bb", "\ud800", "x" * 129],
    ids=lambda name: ascii(name)[:12],
)
@pytest.mark.parametrize(("registry", "feature"), REGISTRIES, ids=kind_of)
def test_no_registry_takes_another_name(registry: Registry[Any], feature: Any, name: Any) -> None:
    """The error contains the class and what to write."""
    feature = type(feature)()
    feature.name = name
    with pytest.raises(
        ConfigurationError, match=rf"{type(feature).__name__} \(.+:\d+\) has (no name: write|the name .*: use 1 to)"
    ):
        registry.register(feature)


def test_a_class_without_a_name_is_refused() -> None:
    """The suggestion is the class's own name."""

    class Greeting(IPrompt[NoArguments]):
        async def render(self, arguments: NoArguments, context: Context) -> str:
            return ""

    with pytest.raises(ConfigurationError, match=r'Greeting \(.+\) has no name: write name = "greeting" in the class'):
        check_prompt(Greeting())


def test_code_that_does_not_suspend_may_run_on_the_loop() -> None:
    """An async method that never awaits runs on the event loop by default; only a plain function cannot."""

    class Quick(Tool):
        suspends = False

    registry = ToolRegistry()
    registry.register(Quick())
    assert Quick.execution == "loop"


async def with_one(self: Any, first: Any) -> str:
    return ""


async def with_three(self: Any, first: Any, second: Any, third: Any) -> str:
    return ""


def with_keywords(self: Any, *, arguments: Any, context: Context) -> str:
    return ""


async def with_unit(self: Any, arguments: Any, context: Context, *, unit: str) -> str:
    return unit


async def in_pieces(self: Any, arguments: Any, context: Context) -> AsyncIterator[str]:
    yield ""


@pytest.mark.parametrize(
    ("base", "method", "code", "remedy"),
    [
        (ITool[NoArguments, str], "execute", with_one, "async def execute(self, arguments, context)"),
        (ITool[NoArguments, str], "execute", with_three, "async def execute(self, arguments, context)"),
        (ITool[NoArguments, str], "execute", with_keywords, "def execute(self, arguments, context)"),
        (ITool[NoArguments, str], "execute", with_unit, "async def execute(self, arguments, context)"),
        (ITool[NoArguments, str], "execute", in_pieces, "IStreamTool[Input, Item] with async def stream"),
        (IStreamTool[NoArguments, str], "stream", with_three, "def stream(self, arguments, context)"),
        (IPrompt[NoArguments], "render", with_one, "async def render(self, arguments, context)"),
        (IPrompt[NoArguments], "render", in_pieces, "return the whole output, without yield"),
        (IResource, "read", with_three, "async def read(self, context)"),
        (IResourceTemplate[NoArguments], "read", with_one, "async def read(self, variables, context)"),
        (IResourceTemplate[NoArguments], "read", in_pieces, "return the whole output, without yield"),
    ],
)
def test_code_that_cannot_be_called_is_refused_when_it_is_defined(
    base: Any, method: str, code: Callable[..., Any], remedy: str
) -> None:
    """The error has the file and line of the method, and what to write."""
    with pytest.raises(DefinitionError) as refused:
        new_class("Wrong", (base,), exec_body=lambda names: names.update({method: code}))
    place = rf"Wrong\.{method} \(\S*test_feature\.py:{code.__code__.co_firstlineno}\) "
    assert re.match(place, str(refused.value))
    assert str(refused.value).endswith(remedy)


async def without_pieces(self: Any, arguments: Any, context: Context) -> str:
    return ""


def test_a_stream_without_yield_is_refused_when_it_is_defined() -> None:
    """The error offers both ways out."""
    with pytest.raises(DefinitionError, match=r"stream \(.+\) has no yield: yield each item, or subclass ITool"):
        new_class(
            "Wrong", (IStreamTool[NoArguments, str],), exec_body=lambda names: names.update(stream=without_pieces)
        )


def test_code_behind_decorators_is_taken_as_it_is() -> None:
    """A decorator may pass on other arguments than it takes, and parameters with defaults are allowed."""

    def in_kilometers(code: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(code)
        async def passing(*arguments: Any) -> Any:
            return await code(*arguments, "km")

        return passing

    class Distance(ITool[NoArguments, str]):
        name = "distance"

        @in_kilometers
        async def execute(self, arguments: NoArguments, context: Context, unit: str) -> str:
            return unit

    class Near(Tool):
        async def execute(self, arguments: NoArguments, context: Context, unit: str = "m") -> str:
            return unit

    class Open(Tool):
        async def execute(self, *arguments: Any, unit: str = "m", **options: Any) -> str:
            return unit

    class Greeter:
        def execute(self) -> str:
            return "hello"

    class Both(Tool, Greeter):
        async def execute(self, arguments: NoArguments, context: Context) -> str:  # type: ignore[override]
            return "both"

    assert ToolRegistry([Distance()]).get_all()
    assert Near().name == Open().name == Both().name == "x"


async def fetch() -> str:
    return ""


class LatePrompt(IPrompt[NoArguments]):
    name = "x"

    def render(self, arguments: NoArguments, context: Context) -> Any:
        return fetch()


class LateResource(IResource):
    name = "x"
    uri = "a://b"

    async def read(self, context: Context) -> Any:
        return fetch()


class LateTemplate(IResourceTemplate[NoArguments]):
    name = "x"
    uri_template = "a://b"

    async def read(self, variables: NoArguments, context: Context) -> Any:
        return fetch()


def late() -> Any:
    return fetch()


@pytest.mark.parametrize(
    "feature", [LatePrompt(), LateResource(), LateTemplate(), prompt(late), resource("a://b")(late)], ids=kind_of
)
async def test_a_missing_await_is_named(feature: IFeature) -> None:
    """A prompt or resource that returns a coroutine says which, where, and what to write."""
    with pytest.raises(OutputError, match=r"returned the coroutine fetch \(\S*test_feature\.py:\d+\): await it"):
        await run(feature)


def test_a_subclass_with_other_code_runs_elsewhere() -> None:
    """Where code runs follows from the code that a subclass overrides, unless an author has said it."""

    class Plain(ITool[NoArguments, str]):
        name = "plain"

        def execute(self, arguments: NoArguments, context: Context) -> Any:
            return ""

    class Asynchronous(Plain):
        async def execute(self, arguments: NoArguments, context: Context) -> str:
            return ""

    assert (Plain.execution, Asynchronous.execution) == ("thread", "loop")
