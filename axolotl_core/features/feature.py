"""What a class gives for the type parameters of a generic base, also through generic classes in between."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args, get_origin

from axolotl_core.arguments import ParseArguments
from axolotl_core.calls.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Icon

Execution: TypeAlias = Literal["loop", "thread", "process"]
"""Where a feature's code runs: on the event loop, in a worker thread, or in a worker process that can be ended."""

Kind: TypeAlias = Literal["tool", "prompt", "resource", "completion", "extension"]
"""What a caller asked for; a resource that a template made is a resource like any other."""


class IFeature(ABC):
    """Something that a server offers and a caller can have run.

    Teams subclass `ITool`, `IPrompt`, `IResource` or `IResourceTemplate`. Everything the server does around the code
    of a feature (layers, deadlines, threads, cancellation) it does for all of them in the same way.
    """

    name: str
    description: str = ""
    title: str | None = None
    icons: tuple[Icon, ...] = ()
    meta: Mapping[str, Any] = {}
    tags: frozenset[str] = frozenset()

    timeout_seconds: float | None = None
    """The deadline of a call; the server's default where it is None."""
    max_timeout_seconds: float | None = None
    """Lets every report of progress start the deadline anew, up to this time after the start of the call."""
    max_concurrency: int | None = None
    """How many calls may run at once; no limit of its own where it is None."""
    queue_limit: int | None = None
    """How many more calls may wait for their turn; the server's default where it is None."""
    queue_timeout_seconds: float | None = None
    """How long they may wait; the server's default where it is None."""
    pool: str | None = None
    """A group whose worker threads, or whose processes, it shares with everything that names the same one; without one
    it runs in the server's threads, or in processes of its own."""
    max_result_bytes: int | None = None
    """How large a result may be; the server's default where it is None."""
    scopes: frozenset[str] = frozenset()
    """What a caller must have been granted to use it, where an authorizer looks at that."""
    cost: float = 1.0
    """How much of a quota one call uses up."""
    execution: Execution = "loop"
    suspends: bool = True
    """Whether the code ever waits; code that never does needs no event loop of its own in a worker thread."""

    input_model: ClassVar[Any]

    @abstractmethod
    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        """Compile what turns raw JSON into the arguments of `execute`."""

    @abstractmethod
    async def execute(self, arguments: Any, context: ToolContext) -> Any:
        """Run for one caller."""


def check_name_of(feature: IFeature) -> None:
    """Look at the name of a feature before it is registered.

    Raises:
        ConfigurationError: if it has none that can be used.
    """
    kind = type(feature).__name__
    name = getattr(feature, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f'{kind} has no name: write name = "{kind.lower()}" in the class')
    if len(name) > 128 or not name.isprintable() or name != name.strip():
        raise ConfigurationError(
            f"{kind} has the name {name!r}: use 1 to 128 printable characters, best [A-Za-z0-9_.-]"
        )


def type_arguments(cls: Any, root: type) -> tuple[Any, ...] | None:
    """Find the type arguments that a class gives to `root`; None where it leaves one of them open."""
    for base in vars(cls).get("__orig_bases__", ()):
        found = _arguments_of(base, root)
        if found is not None and not any(open_parameters(argument) for argument in found):
            return found
    return None


def open_parameters(argument: Any) -> tuple[Any, ...]:
    """List the type parameters that are still to be filled in."""
    if isinstance(argument, TypeVar):
        return (argument,)
    return tuple(getattr(argument, "__parameters__", ()))


def _arguments_of(base: Any, root: type) -> tuple[Any, ...] | None:
    """Follow `Some[A, B]` up to `root[...]`, filling in A and B on the way."""
    origin: Any = get_origin(base)
    if not inspect.isclass(origin) or not issubclass(origin, root):
        return None
    if origin is root:
        return get_args(base)
    values = dict(zip(open_parameters(origin), get_args(base), strict=False))
    parents = (_arguments_of(parent, root) for parent in getattr(origin, "__orig_bases__", ()))
    found = next((arguments for arguments in parents if arguments is not None), None)
    return found and tuple(_filled(argument, values) for argument in found)


def _filled(argument: Any, values: Mapping[Any, Any]) -> Any:
    parameters = open_parameters(argument)
    if not parameters:
        return argument
    if isinstance(argument, TypeVar):
        return values.get(argument, argument)
    return argument[tuple(values.get(parameter, parameter) for parameter in parameters)]
