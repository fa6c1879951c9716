"""Tools: `ITool`, `IStreamTool`, `ToolAnnotations`, `@tool` and `tools_of`."""

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, Unpack, get_origin, overload

import msgspec
from pydantic import BaseModel, TypeAdapter

from axolotl_core.arguments import ParseArguments, model_parser
from axolotl_core.calls.context import Context
from axolotl_core.content import AppLink, is_structured
from axolotl_core.errors import ConfigurationError, DefinitionError
from axolotl_core.features.attributes import caller_place, place_of_code
from axolotl_core.features.feature import IFeature, check_attributes, check_kind, check_parameters, declared_types
from axolotl_core.features.function_feature import (
    FeatureOptions,
    FunctionFeature,
    buffer,
    buffered_type,
    decorate,
    features_of,
    parameters_schema,
)
from axolotl_core.policies.tool_rules import Approval, Breaker, Idempotency, Retry
from axolotl_core.schema import JsonSchema, P, R, adapter_of, admits_extra, closed, schema_of

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required", "detached"]
TaskRestart: TypeAlias = Literal["resume", "never"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class ToolAnnotations(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hints for clients about the behavior of a tool. Clients must not rely on them."""

    title: str | None = None
    read_only: bool | None = msgspec.field(default=None, name="readOnlyHint")
    destructive: bool | None = msgspec.field(default=None, name="destructiveHint")
    idempotent: bool | None = msgspec.field(default=None, name="idempotentHint")
    open_world: bool | None = msgspec.field(default=None, name="openWorldHint")


class ITool(IFeature, Generic[InputT, OutputT]):
    """A typed tool: `class Add(ITool[Pair, Sum])` with a name, a description and `execute`.

    The type arguments are its input, a pydantic model, and its output. A model or any other JSON type becomes
    structured content, `str` becomes text, `None` becomes nothing; content blocks and `ToolResult` are sent unchanged.
    """

    annotations: ToolAnnotations = ToolAnnotations()
    app: str | AppLink | None = None
    """The `ui://` resource that displays the tool's results, for clients that support MCP Apps."""
    task_support: TaskSupport = "forbidden"
    """Whether a call can or must run as a task, whose result the caller fetches later.

    With `"detached"`, it begins in the request and becomes a task where its code calls `context.detach()`.
    """
    task_restart: TaskRestart | None = None
    """Whether the code of a stored task runs again from the start after its worker was lost, or the task fails. None
    means that it runs again if the tool is read-only or idempotent."""
    coerce_arguments: bool | None = None
    """Whether `"5"` is accepted for 5; None for the server's default (no)."""
    requires_approval: bool | Approval = False
    """Whether the user must approve each call. A client that cannot ask cannot call the tool."""
    idempotency: Idempotency | None = None
    """Lets a second call with the same key share the result of the first one."""
    retry: Retry | None = None
    """Runs the code again after transient errors."""
    breaker: Breaker | None = None
    """The circuit breaker: refuses calls for a while after too many failures."""

    output_model: ClassVar[Any]
    _instead_of_pieces = "make the tool a subclass of IStreamTool[Input, Item] with async def stream"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        models = declared_types(cls, ITool, "execute", "input and output", "Input, Output")
        if models is None:
            return
        cls.input_model, cls.output_model = models
        is_model = inspect.isclass(cls.input_model) and issubclass(cls.input_model, BaseModel)
        if not is_model and cls.argument_parser is ITool.argument_parser:
            raise DefinitionError(
                f"The input of {cls.__name__}{caller_place()} is {cls.input_model!r}; the first type argument must be "
                "a pydantic model (NoArguments for a tool without arguments, SchemaTool for a raw JSON Schema)"
            )

    @abstractmethod
    def execute(self, arguments: InputT, context: Context) -> OutputT | Awaitable[OutputT]:
        """Do the work and return the output, in an `async def` or in a plain `def`, which runs in a worker thread.

        Raises:
            ToolError: to report a problem to the model. Any other exception is logged and hidden.
        """

    @property
    def input_schema(self) -> JsonSchema:
        """The JSON Schema of the arguments. Override it to publish another one."""
        return self._derived_input if admits_extra(self._derived_input) else closed(self._derived_input)

    @property
    def output_schema(self) -> JsonSchema | None:
        """The JSON Schema of the structured output; None if there is no structured output."""
        return schema_of(self.output_model, "serialization") if is_structured(self.output_model) else None

    @property
    def output_adapter(self) -> TypeAdapter[Any]:
        """Validates and serializes the structured output."""
        return adapter_of(self.output_model)

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        forbid_extra = not admits_extra(self._derived_input)
        return model_parser(self.input_model, strict=not coerce, forbid_extra=forbid_extra)

    @property
    def _derived_input(self) -> JsonSchema:
        return schema_of(self.input_model, "validation")


def check_definition(tool: Any) -> None:
    """Check a tool before it is registered.

    Raises:
        ConfigurationError: if the tool is incomplete.
    """
    kind = type(tool).__name__
    check_kind(tool, "tool", "subclass ITool or use @tool", ITool)
    check_attributes(tool, ITool)
    if not hasattr(tool, "input_model"):
        raise ConfigurationError(f"{kind} has no input and output: write class {kind}(ITool[Input, Output])")


class ToolOptions(FeatureOptions, total=False):
    """The options of `@tool`: attributes of `ITool`."""

    annotations: ToolAnnotations
    app: str | AppLink
    task_support: TaskSupport
    task_restart: TaskRestart
    coerce_arguments: bool
    requires_approval: bool | Approval
    idempotency: Idempotency
    retry: Retry
    breaker: Breaker


class FunctionTool(FunctionFeature[P, R], ITool[dict[str, Any], Any]):
    """The tool that `@tool` creates. Calling it calls the function."""

    collector = "tools_of"

    def __init__(self, function: Callable[P, R], options: ToolOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.output_model = self.returned  # type: ignore[misc]

    def __get__(self, instance: object | None, owner: type) -> "FunctionTool[..., R]":
        bound: FunctionTool[..., R] = self.bind(instance, owner)
        return bound

    execute = FunctionFeature.call_function

    @property
    def input_schema(self) -> JsonSchema:
        return parameters_schema(self.signature.parameters)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Turn a function or method into a tool.

    An `async def` runs on the event loop. A plain `def` runs in a worker thread, unless `execution="loop"` is set. A
    parameter annotated with `Context` receives the context and is not an argument of the tool.

    Raises:
        ConfigurationError: if a parameter cannot be passed by name, or an option does not exist.
    """
    return decorate("tool", FunctionTool, options, ToolOptions, function)


def tools_of(instance: object) -> tuple[FunctionTool[..., Any], ...]:
    """Return the `@tool` methods of an object, bound to it, in the order of their definition."""
    return features_of(instance, FunctionTool)


ItemT = TypeVar("ItemT")


class IStreamTool(ITool[InputT, list[ItemT]]):
    """A tool that yields its output in pieces: `class Chat(IStreamTool[Question, str])`.

    Strings are joined to one text; other items become a list. A caller that asked for progress gets one notification
    per item, unless the code calls `context.report_progress` before its second item.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        code = vars(cls).get("stream")
        if inspect.isfunction(code):
            check_parameters(cls, "stream")
            if inspect.iscoroutinefunction(code) and not inspect.isabstract(cls):
                where = place_of_code(code)
                raise DefinitionError(
                    f"{cls.__name__}.stream{where} has no yield: yield each item, or subclass ITool and write execute"
                )
        declared = getattr(cls, "output_model", None)
        if get_origin(declared) is list:
            cls.output_model = buffered_type(declared)

    @abstractmethod
    def stream(self, arguments: InputT, context: Context) -> AsyncIterator[ItemT]:
        """Yield the pieces of the output.

        Raises:
            ToolError: to report a problem to the model. The pieces so far are dropped.
        """

    async def execute(self, arguments: InputT, context: Context) -> Any:
        return await buffer(self.stream(arguments, context), context, self.output_model)
