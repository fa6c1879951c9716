"""ITool: its models, and errors for missing parts."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from axolotl_core import ConfigurationError, Context, ITool, NoArguments, ToolRegistry
from axolotl_core.content import ToolResult
from axolotl_core.registry import AnyTool
from axolotl_core.tools.tool import check_definition
from tests.support.core.sample_tools import Add, Named, Pair, Sum

ValueT = TypeVar("ValueT")
OtherT = TypeVar("OtherT")


class Page(BaseModel, Generic[ValueT]):
    """A generic model."""

    items: list[ValueT]


class Typical(ITool[Pair, ValueT], Generic[ValueT]):
    """Leaves the output open."""

    async def execute(self, arguments: Pair, context: Context) -> ValueT:
        raise NotImplementedError


class Listing(ITool[Pair, list[ValueT]], Generic[ValueT]):
    """Uses its parameter inside another type."""

    async def execute(self, arguments: Pair, context: Context) -> list[ValueT]:
        return []


class Swapped(ITool[OtherT, ValueT], Generic[ValueT, OtherT]):
    """Takes its parameters in another order than ITool does."""

    async def execute(self, arguments: OtherT, context: Context) -> ValueT:
        raise NotImplementedError


class Paged(ITool[Page[ValueT], ValueT], Generic[ValueT]):
    """Uses its parameter inside a generic model."""

    async def execute(self, arguments: Page[ValueT], context: Context) -> ValueT:
        return arguments.items[0]


class Closed(Typical[Sum]):
    """Is not generic anymore."""


class FromSwapped(Swapped[Sum, Pair]):
    """Fills both."""


class Bracket(Listing[ValueT]):
    """Passes its parameter on."""


class FromBracket(Bracket[int]):
    """Fills in two type parameters."""


class FromPaged(Paged[int]):
    """Fills a parameter inside a model."""


class Heir(Closed):
    """Inherits from a class whose models are known."""


class Mixin(Generic[ValueT]):
    """Has nothing to do with tools."""


class WithMixin(Mixin[str], Add):
    """Has a generic base that is not a tool."""


class Direct(ITool[Pair, ToolResult]):
    """Names its models itself."""

    async def execute(self, arguments: Pair, context: Context) -> ToolResult:
        return ToolResult()


@pytest.mark.parametrize(
    ("kind", "taken", "given"),
    [
        pytest.param(Direct, Pair, ToolResult, id="direct"),
        pytest.param(Closed, Pair, Sum, id="one-generic-class-between"),
        pytest.param(FromSwapped, Pair, Sum, id="parameters-in-another-order"),
        pytest.param(FromBracket, Pair, list[int], id="two-generic-classes-between"),
        pytest.param(FromPaged, Page[int], int, id="parameter-inside-a-model"),
        pytest.param(Heir, Pair, Sum, id="inherited"),
        pytest.param(WithMixin, Pair, Sum, id="unrelated-generic-base"),
    ],
)
def test_models_are_read_from_the_type_arguments(kind: type[AnyTool], taken: Any, given: Any) -> None:
    """The type arguments become the models, however many generic classes stand between."""
    assert (kind.input_model, kind.output_model) == (taken, given)


def test_a_class_that_leaves_its_models_open_has_none() -> None:
    """A generic class in between has no models of its own."""
    assert not hasattr(Typical, "input_model")


def test_missing_models_are_refused_at_class_creation() -> None:
    """A tool that executes but names no models is refused with the line to write."""
    with pytest.raises(TypeError, match=r"class Forgetful\(ITool\[Input, Output\]\)"):

        class Forgetful(ITool):  # type: ignore[type-arg]
            async def execute(self, arguments: Any, context: Context) -> Any: ...


def test_an_open_type_parameter_is_refused_at_class_creation() -> None:
    """A class that executes and forgets the parameter of its generic base is refused as well."""
    with pytest.raises(TypeError, match=r"class Leaf\(ITool\[Input, Output\]\)"):

        class Leaf(Typical):  # type: ignore[type-arg]
            async def execute(self, arguments: Pair, context: Context) -> Any: ...


def test_missing_models_without_execute_are_refused_at_registration() -> None:
    """A class that inherits `execute` and forgets the parameter is refused when it is registered."""

    class Silent(Typical):  # type: ignore[type-arg]
        name = "silent"

    with pytest.raises(
        ConfigurationError, match=r"Silent has no input and output: write class Silent\(ITool\[Input, Output\]\)"
    ):
        ToolRegistry([Silent()])


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(int, id="scalar"),
        pytest.param(list[int], id="list"),
        pytest.param(dict, id="bare-dict"),
        pytest.param(dict[str, Any], id="dict"),
        pytest.param(None, id="none"),
        pytest.param(Pair | Sum, id="union"),
    ],
)
def test_an_input_must_be_a_model(model: Any) -> None:
    """The first type argument must be a pydantic model; the text names the alternatives."""
    with pytest.raises(TypeError, match=r"first type argument must be a pydantic model.*NoArguments.*SchemaTool"):

        class Odd(ITool[model, None]):
            async def execute(self, arguments: Any, context: Context) -> None: ...


def test_a_tool_that_reads_its_arguments_itself_may_take_anything() -> None:
    """A class that brings its own parser is not bound to models."""

    class Raw(ITool[bytes, None]):
        def argument_parser(self, *, coerce: bool) -> Any:
            return bytes

        async def execute(self, arguments: bytes, context: Context) -> None: ...

    assert Raw.input_model is bytes


def test_an_abstract_class_needs_no_models() -> None:
    """A class without `execute` may postpone its models."""

    class Later(ITool[ValueT, OtherT]):
        @abstractmethod
        def more(self) -> int: ...

    assert not hasattr(Later, "input_model")


class Nameless(ITool[NoArguments, None]):
    """Forgot its name."""

    async def execute(self, arguments: NoArguments, context: Context) -> None:
        return None


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        pytest.param(Nameless(), 'has no name: write name = "nameless" in the class', id="forgotten"),
        pytest.param(Named(""), "has no name", id="empty"),
        pytest.param(Named("x" * 129), "use 1 to 128 printable characters", id="too-long"),
        pytest.param(Named("a\nb"), "use 1 to 128 printable characters", id="line-break"),
        pytest.param(Named(" a"), "use 1 to 128 printable characters", id="space-around"),
        pytest.param(Add, "register an instance, not the class", id="class"),
        pytest.param(len, "subclass ITool or use @tool", id="plain-function"),
        pytest.param("add", "subclass ITool or use @tool", id="text"),
    ],
)
def test_an_incomplete_tool_is_refused_at_registration(tool: Any, text: str) -> None:
    """An incomplete tool is refused with a text that says what to write."""
    registry = ToolRegistry()
    with pytest.raises(ConfigurationError) as refused:
        registry.register(tool)
    assert text in str(refused.value)
    assert registry.get_all() == ()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a", id="one-character"),
        pytest.param("x" * 128, id="longest"),
        pytest.param("files.read-all_2", id="recommended-alphabet"),
        pytest.param("größe", id="unicode"),
        pytest.param("two words", id="space-inside"),
    ],
)
def test_any_printable_name_is_accepted(name: str) -> None:
    """A name may be anything printable of 1 to 128 characters."""
    check_definition(Named(name))
