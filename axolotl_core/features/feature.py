"""`IFeature`, the base of tools, prompts and resources, type arguments, and errors about outputs."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import Field, Strict, ValidationError
from pydantic_core import PydanticSerializationError

from axolotl_core.arguments import ParseArguments
from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError, DefinitionError, OutputError
from axolotl_core.features.attributes import caller_place, faults_of_attributes, label_of, place_of, place_of_code
from axolotl_core.protocol.identity import Icon
from axolotl_core.schema import explain_undefined

Execution: TypeAlias = Literal["loop", "thread", "process"]
"""Where a feature's code runs: on the event loop, in a worker thread, or in a tool process, which can be killed."""

RuledKind: TypeAlias = Literal["tool", "prompt", "resource", "skill", "extension"]
"""The kinds of features that rules can match. Completions belong to the feature they complete."""
Kind: TypeAlias = Literal[RuledKind, "completion"]
"""The kind of a feature. A resource from a template is a `resource`, too, and a file of a skill is a `skill`."""
NAMED_KINDS: Final = frozenset({"tool", "prompt", "completion", "extension"})
"""The kinds that are found by a name; all others are found by a URI."""

_MOST_MISTAKES: Final = 3
_REMEDIES: Final[Mapping[str, str]] = {
    "surrogates not allowed": "a text has half of a surrogate pair, which is not a character: replace it, for example "
    'with text.encode("utf-8", "replace").decode()',
    "invalid utf-8 sequence": 'it holds bytes that are not UTF-8: set ser_json_bytes="base64" in the '
    "model_config of their model, or return a content block",
}
UNSENDABLE: Final = (ValidationError, PydanticSerializationError, UnicodeEncodeError)
"""What encoding an output raises if it does not fit its type, or is not JSON."""

Names: TypeAlias = Annotated[frozenset[str], Strict(False)]
_Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_FromZero: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class IFeature(ABC):
    """Something that a server offers and a caller can run.

    Subclass `ITool`, `IPrompt`, `IResource` or `IResourceTemplate`. Layers, deadlines, threads and cancellation work in
    the same way for all of them.
    """

    name: str
    description: str = ""
    title: str | None = None
    icons: Annotated[tuple[Icon, ...], Strict(False)] = ()
    meta: Mapping[str, Any] = {}
    tags: Names = frozenset()

    timeout_seconds: _Positive | None = None
    """The time limit of a call; None for the server's default."""
    max_timeout_seconds: _Positive | None = None
    """Each progress report restarts the time limit, up to this time after the start of the call."""
    max_concurrency: Annotated[int, Field(ge=1)] | None = None
    """How many calls may run at the same time; None for no limit."""
    queue_limit: Annotated[int, Field(ge=0)] | None = None
    """How many more calls may wait; None for the server's default."""
    queue_timeout_seconds: _FromZero | None = None
    """How long a call may wait; None for the server's default."""
    pool: str | None = None
    """The name of a share of the threads for all features with the same `pool`. None for a share of its own."""
    max_result_bytes: Annotated[int, Field(ge=1)] | None = None
    """The maximum size of a result; None for the server's default."""
    scopes: Names = frozenset()
    """The scopes that a caller needs, if an authorizer checks them."""
    cost: _FromZero = 1.0
    """How much of a quota a call consumes."""
    execution: Execution = "loop"
    suspends: bool = True
    """Whether the code ever awaits. If it does not, it needs no event loop in a worker thread."""

    scanned: bool = True
    """Whether `scan` collects this class; subclasses do not inherit False."""

    input_model: ClassVar[Any]

    _code: ClassVar[tuple[str, ...]] = ("execute",)
    """The methods that a subclass can write as plain functions."""
    _instead_of_pieces: ClassVar[str] = "return the whole output, without yield"
    """What to write instead of a generator."""
    _has_plain_code: ClassVar[bool] = False
    _derives_execution: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        written = [(name, vars(cls)[name]) for name in cls._code if inspect.isfunction(vars(cls).get(name))]
        for name, code in written:
            check_parameters(cls, name)
            if inspect.isasyncgenfunction(inspect.unwrap(code)):
                where = place_of_code(code)
                raise DefinitionError(
                    f"{cls.__name__}.{name}{where} is an asynchronous generator: {cls._instead_of_pieces}"
                )
        plain = [(name, code) for name, code in written if _is_plain(code)]
        for name, code in plain:
            setattr(cls, name, _awaitable(code))
        if plain or (written and cls._has_plain_code):
            cls._has_plain_code = bool(plain)
            execution, suspends = ("thread", False) if plain else ("loop", True)
            owner = next(base for base in cls.__mro__ if "execution" in vars(base))
            if owner is IFeature or "_derives_execution" in vars(owner):  # no author has set it
                cls.execution, cls._derives_execution = execution, True  # type: ignore[assignment]
            cls.suspends = suspends

    @abstractmethod
    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile a parser from raw JSON to the arguments of `execute`."""

    @abstractmethod
    def execute(self, arguments: Any, context: Context) -> Any:
        """Run one call. A plain function becomes an asynchronous one, which runs in a worker thread."""


def check_parameters(cls: type, name: str) -> None:
    """Check that a method of a class takes what the method of its interface takes.

    Raises:
        DefinitionError: if it has too few or too many parameters.
    """
    method = vars(cls)[name]
    interfaces = [base for base in cls.__mro__ if issubclass(base, IFeature) and name in vars(base)]
    interface = vars(interfaces[-1])[name].__code__
    expected = interface.co_varnames[: interface.co_argcount]
    # A signature would evaluate the annotations.
    code, defaults, named = method.__code__, method.__defaults__ or (), method.__kwdefaults__ or {}
    at_most = len(expected) if code.co_flags & inspect.CO_VARARGS else code.co_argcount
    required = code.co_argcount - len(defaults)
    if not required <= len(expected) <= at_most or code.co_kwonlyargcount != len(named):
        keyword = "async def" if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method) else "def"
        raise DefinitionError(
            f"{cls.__name__}.{name}{place_of_code(method)} is called with {' and '.join(expected[1:])}, but has other "
            f"parameters: write {keyword} {name}({', '.join(expected)})"
        )


def check_awaited(feature: IFeature, output: Any) -> Any:
    """Return the output of a feature, unless it is a coroutine or an asynchronous generator: an `await` is missing.

    Raises:
        OutputError: with the place of the code, and what to write.
    """
    if not inspect.isawaitable(output) and not inspect.isasyncgen(output):
        return output
    code = getattr(feature, "function", None) or getattr(type(feature), feature._code[0])
    kind = type(output).__name__.replace("_", " ")
    name = getattr(output, "__qualname__", "")
    if inspect.iscoroutine(output):
        output.close()  # Python would warn that nothing awaited it
    remedy = "await it, in an async def" if inspect.isawaitable(output) else feature._instead_of_pieces
    raise OutputError(f"it returned the {' '.join(filter(None, (kind, name)))}{place_of_code(code)}: {remedy}")


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function as types.

    Raises:
        ConfigurationError: if one of them names something that its module does not have.
    """
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"{function.__qualname__}{place_of_code(function)}: {explain_undefined(error.name)}"
        ) from error


def _is_plain(code: Any) -> bool:
    """Whether this is a function without await; decorators that keep a reference to a coroutine function are not."""
    inner = inspect.unwrap(code)
    is_async = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
    return not is_async and not getattr(code, "__isabstractmethod__", False)


def _awaitable(code: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(code)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return code(*args, **kwargs)

    return run


def check_kind(feature: Any, noun: str, remedy: str, *kinds: type) -> None:
    """Check that something is a feature of some kinds.

    Raises:
        ConfigurationError: if it is something else, or a class.
    """
    if not isinstance(feature, kinds):
        hint = "register an instance, not the class" if inspect.isclass(feature) else remedy
        raise ConfigurationError(f"{label_of(feature)} is not a {noun}: {hint}")


def check_attributes(feature: IFeature, interface: type) -> None:
    """Check the name and all other attributes of a feature before it is registered.

    Raises:
        ConfigurationError: with everything that is wrong: a missing or invalid name, wrong values, misspelled names.
    """
    _check_name(feature)
    findings = tuple(faults_of_attributes(feature, interface))
    if findings:
        raise ConfigurationError(*findings)


def _check_name(feature: IFeature) -> None:
    kind = type(feature).__name__
    name = getattr(feature, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f'{kind}{place_of(feature)} has no name: write name = "{kind.lower()}" in the class')
    if len(name) > 128 or not name.isprintable() or name != name.strip():
        raise ConfigurationError(
            f"{kind}{place_of(feature)} has the name {name!r}: use 1 to 128 printable characters, preferably "
            "[A-Za-z0-9_.-]"
        )


def type_arguments(cls: Any, root: type) -> tuple[Any, ...] | None:
    """Return the type arguments of a class for its generic base `root`; None if one of them is a type variable."""
    for base in vars(cls).get("__orig_bases__", ()):
        found = _arguments_of(base, root)
        if found is not None and not any(open_parameters(argument) for argument in found):
            return found
    return None


def open_parameters(argument: Any) -> tuple[Any, ...]:
    """List the type variables in a type argument."""
    if isinstance(argument, TypeVar):
        return (argument,)
    return tuple(getattr(argument, "__parameters__", ()))


def declared_types(cls: Any, root: type, method: str, what: str, names: str) -> tuple[Any, ...] | None:
    """Return the type arguments of a class for its generic base `root`; None if it inherits them or leaves them open.

    Raises:
        DefinitionError: if a class with this method has none, or a generic class as one of them.
    """
    found = type_arguments(cls, root)
    if found is not None or hasattr(cls, "input_model") or method not in vars(cls) or open_parameters(cls):
        return found
    kind, where = cls.__name__, caller_place()
    written = [_arguments_of(base, root) or () for base in vars(cls).get("__orig_bases__", ())]
    for argument in (argument for arguments in written for argument in arguments if inspect.isclass(argument)):
        if open_parameters(argument):
            generic = argument.__name__.partition("[")[0]
            closed = f"{generic}[{', '.join('int' for _ in open_parameters(argument))}]"
            raise DefinitionError(
                f"{kind}{where}: {generic} is generic, and its type is left open: write for example {closed} instead, "
                f"or the name of a class like class My{generic}({closed})"
            )
    raise DefinitionError(f"{kind}{where} has no {what}: write class {kind}({root.__name__}[{names}])")


def _arguments_of(base: Any, root: type) -> tuple[Any, ...] | None:
    """Follow `Some[A, B]` up to `root[...]` and substitute A and B."""
    origin: Any = get_origin(base)
    if not inspect.isclass(origin) or not issubclass(origin, root):
        return None
    if origin is root:
        return get_args(base)
    values = dict(zip(open_parameters(origin), get_args(base), strict=False))
    parents = (_arguments_of(parent, root) for parent in getattr(origin, "__orig_bases__", ()))
    found = next((arguments for arguments in parents if arguments is not None), None)
    return found and tuple(_substituted(argument, values) for argument in found)


def _substituted(argument: Any, values: Mapping[Any, Any]) -> Any:
    parameters = open_parameters(argument)
    if not parameters:
        return argument
    if isinstance(argument, TypeVar):
        return values.get(argument, argument)
    return argument[tuple(values.get(parameter, parameter) for parameter in parameters)]


def output_error(error: ValueError, output: Any, feature: Any) -> OutputError:
    """Say which part of an output does not fit; the values, which may be secret, are left out."""
    returned, declared = type(output).__qualname__, getattr(feature, "output_model", None)
    if not isinstance(error, ValidationError):
        why = next((remedy for text, remedy in _REMEDIES.items() if text in str(error)), str(error))
        return OutputError(f"it returned {returned}{place_of(feature)}, which is not JSON: {why}")
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in mistakes[:_MOST_MISTAKES]]
    expected = declared.__qualname__ if isinstance(declared, type) else str(declared)
    return OutputError(
        f"it returned {returned}{place_of(feature)}, which does not fit its output type {expected}: "
        + "; ".join(text.removeprefix(": ") for text in texts)
    )
