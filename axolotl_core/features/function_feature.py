"""Functions and methods as features: signatures, options, validation of parameters, streaming."""

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from copy import copy, deepcopy
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, Generic, Self, TypedDict, cast, get_args, get_origin

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from axolotl_core.arguments import (
    MAX_PROBLEMS,
    ParseArguments,
    explain_findings,
    json_validator,
    refusal,
    refuse_duplicates,
    unknown_argument,
)
from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.attributes import caller_place, similar
from axolotl_core.features.feature import Execution, IFeature, type_hints
from axolotl_core.protocol.identity import Icon
from axolotl_core.schema import JsonSchema, P, R, adapter_of, admits_extra, closed, schema_of, schemas_of

_MUTABLE: Final = (list, dict, set, bytearray)
"""Defaults of these types are copied for each call, as pydantic does for fields of models."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Parameter(msgspec.Struct, frozen=True):
    """A parameter: its name for callers, its type and its default."""

    name: str
    public_name: str
    annotation: Any
    description: str | None
    required: bool
    default: Callable[[], Any] | None
    """Creates the default value; None leaves that to the function."""
    schema_default: Any = PydanticUndefined

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any, description: str | None) -> "Parameter":
        """Read a parameter. `default` is `...` if there is none, and can be a pydantic `Field`."""
        info = _field_info(annotation, default)
        if info is None:
            shown = PydanticUndefined if default is ... else default
            copied = partial(deepcopy, default) if isinstance(default, _MUTABLE) else None
            return cls(name, name, annotation, description, default is ..., copied, shown)
        required = info.is_required()
        public_name = info.validation_alias if isinstance(info.validation_alias, str) else name
        make = None if required else partial(info.get_default, call_default_factory=True)
        described = info.description or description
        return cls(name, public_name, _standalone(info), described, required, make, info.default)

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Validates values."""
        return adapter_of(self.annotation)


def parameters_schema(parameters: Sequence[Parameter]) -> JsonSchema:
    """Describe the arguments of a function."""
    schemas = [schema_of(parameter.annotation, "validation") for parameter in parameters]
    definitions: JsonSchema = {}
    is_open = any(map(admits_extra, schemas))
    if any("$defs" in schema for schema in schemas):
        schemas, definitions = schemas_of([parameter.adapter for parameter in parameters])
    schemas = schemas if is_open else [closed(schema) for schema in schemas]
    properties = {one.public_name: _described(one, schema) for one, schema in zip(parameters, schemas, strict=True)}
    required = [parameter.public_name for parameter in parameters if parameter.required]
    schema: JsonSchema = {"additionalProperties": False, "properties": properties, "type": "object"}
    if required:
        schema["required"] = required
    if not definitions:
        return schema
    return {**schema, "$defs": definitions} if is_open else closed({**schema, "$defs": definitions})


def parameters_parser(parameters: Sequence[Parameter], *, strict: bool) -> ParseArguments:
    """Compile a parser from raw JSON to the keyword arguments of a function."""
    by_name = {parameter.public_name: parameter for parameter in parameters}
    admits = any(admits_extra(schema_of(parameter.annotation, "validation")) for parameter in parameters)
    validators = {name: _validator(parameter, strict, admits) for name, parameter in by_name.items()}

    def parse(raw: bytes) -> dict[str, Any]:
        given = _read_fields(raw)
        if raw.count(b":") != len(given):
            refuse_duplicates(raw)
        arguments: dict[str, Any] = {}
        problems: list[str] = []
        for name, parameter in by_name.items():
            value = given.pop(name, None)
            if value is None and parameter.required:
                problems.append(f"{name}: required, but missing")
            if value is None:
                if parameter.default is not None:
                    arguments[parameter.name] = parameter.default()
                continue
            try:
                arguments[parameter.name] = validators[name](bytes(value))
            except ValidationError as error:
                problems += explain_findings(error, (), place=(name,))
        if given:
            count = len(problems) + len(given)
            problems += [unknown_argument(name, tuple(by_name)) for name in islice(given, MAX_PROBLEMS)]
            raise refusal(problems, count)
        if problems:
            raise refusal(problems)
        return arguments

    return parse


def _validator(parameter: Parameter, strict: bool, admits: bool) -> Callable[[bytes], Any]:
    adapter = parameter.adapter
    return json_validator(adapter.validator, lambda: adapter.core_schema, strict, None if admits else "forbid")


def _described(parameter: Parameter, schema: Mapping[str, Any]) -> JsonSchema:
    described = dict(schema)
    if parameter.description and "description" not in described:
        described["description"] = parameter.description
    if parameter.schema_default is not PydanticUndefined:
        described["default"] = to_jsonable_python(parameter.schema_default)
    return described


def _field_info(annotation: Any, default: Any) -> FieldInfo | None:
    """Combine the `Field`s of a parameter; None if it has none."""
    extras = get_args(annotation) if get_origin(annotation) is Annotated else ()
    has_field = any(isinstance(extra, FieldInfo) for extra in extras)
    if isinstance(default, FieldInfo) or (has_field and default is not ...):
        return FieldInfo.from_annotated_attribute(annotation, default)
    return FieldInfo.from_annotation(annotation) if has_field else None


def _standalone(info: FieldInfo) -> Any:
    """Return the annotation without alias and default, which only fields of models can have."""
    field = copy(info)
    field.alias = field.validation_alias = field.serialization_alias = None
    field.default, field.default_factory, field.metadata = PydanticUndefined, None, []
    return Annotated[info.annotation, *info.metadata, field]


async def buffer(stream: AsyncIterator[Any], context: Context, declared: Any) -> Any:
    """Collect a stream. Strings are joined, if the type is `str`, or if it is Any and all items are strings."""
    items: list[Any] = []
    async for item in stream:
        context.add_piece(len(items))
        items.append(item)
    context.add_piece(len(items))
    undeclared_text = declared is Any and items and all(isinstance(item, str) for item in items)
    return "".join(items) if declared is str or undeclared_text else items


def buffered_type(stream: Any) -> Any:
    """Return the type of a buffered stream: `str` for a stream of strings, otherwise a list."""
    item: Any = next(iter(get_args(stream)), Any)
    return item if item in (str, Any) else list[item]


_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class Signature(msgspec.Struct, frozen=True):
    """The signature of a function as a feature."""

    description: str
    parameters: tuple[Parameter, ...]
    context_parameters: tuple[str, ...]
    returned: Any
    """The return annotation; Any if there is none."""

    @classmethod
    def of(cls, function: Callable[..., Any], *, skip_first: bool) -> "Signature":
        """Read a function. `skip_first` leaves out `self`.

        Raises:
            ConfigurationError: if a parameter has no annotation, or cannot be passed by name.
        """
        hints = type_hints(function)
        found = list(inspect.signature(function).parameters.values())[skip_first:]
        for parameter in found:
            _check(function, parameter, hints)
        context = tuple(one.name for one in found if Context in (hints[one.name], *get_args(hints[one.name])))
        description, described = _documentation(inspect.cleandoc(function.__doc__ or ""))
        parameters = tuple(
            Parameter.of(
                one.name, hints[one.name], ... if one.default is one.empty else one.default, described.get(one.name)
            )
            for one in found
            if one.name not in context
        )
        return cls(description, parameters, context, hints.get("return", Any))


def _documentation(docstring: str) -> tuple[str, Mapping[str, str]]:
    """Split a docstring into the descriptions of the function and of its parameters."""
    if "\n" not in docstring:
        return docstring, {}
    import docstring_parser  # servers without long docstrings start faster

    try:
        parsed = docstring_parser.parse(docstring)
    except docstring_parser.ParseError:
        return docstring, {}
    described = {parameter.arg_name: parameter.description or "" for parameter in parsed.params}
    return (parsed.description or "").strip(), described


def _check(function: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    if parameter.kind in _VARIADIC or parameter.kind is parameter.POSITIONAL_ONLY:
        problem = "each parameter must be passable by name"
    elif parameter.name not in hints:
        context = f"for the context of the call, write {parameter.name}: Context"
        problem = f"annotate the parameter; its schema is derived from its type ({context})"
    else:
        return
    raise ConfigurationError(f"{function.__qualname__}({parameter.name}){caller_place()}: {problem}")


class FeatureOptions(TypedDict, total=False):
    """The options of all decorators: attributes of `IFeature`."""

    name: str
    description: str
    title: str
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]
    tags: frozenset[str]
    timeout_seconds: float
    max_timeout_seconds: float
    max_concurrency: int
    queue_limit: int
    queue_timeout_seconds: float
    pool: str
    max_result_bytes: int
    scopes: frozenset[str]
    cost: float
    execution: Execution
    scanned: bool


class FunctionFeature(IFeature, Generic[P, R]):
    """A feature created from a function. Calling it calls the function."""

    _instead_of_pieces = "write an async def that yields its items"
    collector: ClassVar[str]
    """The function that returns the decorated methods of an object, such as `tools_of`."""

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any], *, bound: bool = True) -> None:
        if isinstance(function, staticmethod):
            function = function.__func__
        self.function = function
        self._bound = bound
        self.signature = Signature.of(function, skip_first=not bound)
        self.streams = inspect.isasyncgenfunction(function)
        """Whether the function yields its output in pieces."""
        returned = self.signature.returned
        self.returned = buffered_type(returned) if self.streams else returned
        """The type of the output."""
        self._is_async = inspect.iscoroutinefunction(function) or self.streams
        self.name = function.__name__
        self.description = self.signature.description
        self.execution = "loop" if self._is_async else "thread"
        self.suspends = self._is_async
        for key, value in options.items():
            setattr(self, key, value)

    def bind(self, instance: object | None, owner: type) -> Any:
        """Return the feature of a method of an object; itself if there is nothing to bind."""
        if instance is None or self._bound:
            return self
        method = copy(self)
        method.function, method._bound = self.function.__get__(instance, owner), True
        return method

    def __reduce__(self) -> Any:
        """Pickle a function by its name, and a method by its object and name."""
        owner = getattr(self.function, "__self__", None)
        if owner is not None:
            return getattr, (owner, self.function.__name__)
        return _find, (self.function.__module__, self.function.__qualname__)

    def __copy__(self) -> Self:
        """Copy the attributes. By default, `copy` would use `__reduce__` and return the original."""
        duplicate = type(self).__new__(type(self))
        vars(duplicate).update(vars(self))
        return duplicate

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile a parser from raw JSON to the function's arguments.

        Raises:
            ConfigurationError: if the function is a method without an object.
        """
        if not self._bound:
            raise ConfigurationError(
                f"{self.name} is a method: register {self.collector}(instance), not the function of the class"
            )
        return parameters_parser(self.signature.parameters, strict=not coerce)

    async def call_function(self, arguments: dict[str, Any], context: Context) -> Any:
        """Call the function, and collect its pieces if it streams."""
        for name in self.signature.context_parameters:
            arguments[name] = context
        result: Any = self.function(**arguments)  # type: ignore[call-arg]
        if self.streams:
            return await buffer(cast(AsyncIterator[Any], result), context, self.returned)
        return await cast(Awaitable[Any], result) if self._is_async else result


def _find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def decorate(kind: str, make: Callable[..., Any], options: Mapping[str, Any], known: Any, target: Any = None) -> Any:
    """Make a feature of the target of a decorator; without one, return the decorator.

    Raises:
        ConfigurationError: if an option is not `known`, or the target is not a function or method.
    """
    unknown = sorted(options.keys() - known.__annotations__)
    if unknown:
        place, names = caller_place(), [(name, similar(name, known.__annotations__)) for name in unknown]
        hints = [(name, "" if near is None else f"; did you mean {near}?") for name, near in names]
        raise ConfigurationError(*(f"@{kind}{place} has no option {name}{hint}" for name, hint in hints))

    def decorated(target: Any) -> Any:
        if isinstance(target, IFeature):
            raise ConfigurationError(f"@{kind} on {target.name!r}, which is already a feature")
        if isinstance(target, classmethod):
            raise ConfigurationError(f"{target.__qualname__}: a class method cannot be a {kind}; use a static method")
        if inspect.isclass(target) or not hasattr(target, "__qualname__"):
            raise ConfigurationError(f"@{kind} decorates a function or method, not {target!r}")
        in_class = "." in target.__qualname__.rpartition("<locals>.")[2]
        is_method = in_class and next(iter(inspect.signature(target).parameters), None) == "self"
        return make(target, options, bound=not is_method)

    return decorated if target is None else decorated(target)


def features_of(instance: object, *kinds: Any) -> tuple[Any, ...]:
    """Return the decorated methods of an object, bound to it, in the order of their definition."""
    names = {name: None for owner in reversed(type(instance).__mro__) for name in vars(owner)}
    found = {name: inspect.getattr_static(instance, name, None) for name in names}
    plain = {name: one.__func__ if isinstance(one, staticmethod) else one for name, one in found.items()}
    return tuple(getattr(instance, name) for name, one in plain.items() if isinstance(one, kinds))
