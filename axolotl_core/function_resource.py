"""`@resource`: a function or a method as a resource, or as a template of resources if its URI has variables."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack

from axolotl_core.completable_function import CompletableFunction
from axolotl_core.content import Annotations
from axolotl_core.context import ToolContext
from axolotl_core.errors import ConfigurationError
from axolotl_core.function_feature import (
    FeatureOptions,
    check_function,
    check_options,
    features_of,
    is_method,
)
from axolotl_core.resource import (
    CacheHint,
    IResource,
    IResourceTemplate,
    ResourceContents,
    ResourceOutput,
    contents_of,
)

__all__ = ["FunctionResource", "FunctionResourceTemplate", "ResourceOptions", "resource", "resources_of"]

P = ParamSpec("P")
R = TypeVar("R")


class ResourceOptions(FeatureOptions, total=False):
    """What `@resource` accepts besides the URI; each stands for the attribute of the same name of the interfaces."""

    mime_type: str
    size: int
    annotations: Annotations
    cache: CacheHint
    unscreened: frozenset[str]


class FunctionResource(CompletableFunction[P, R], IResource):
    """The resource that `@resource` makes; calling it calls the function."""

    collector = "resources_of"

    def __init__(self, uri: str, function: Callable[P, R], options: ResourceOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.uri = uri
        if self._signature.parameters:
            first = self._signature.parameters[0].name
            raise ConfigurationError(f"@resource({uri!r}): {self.name} takes {first!r}, but the URI has no {{{first}}}")

    def __get__(self, instance: object | None, owner: type) -> "FunctionResource[..., R]":
        if instance is None or self._bound:
            return self
        return FunctionResource(self.uri, self.function.__get__(instance, owner), self._options)  # type: ignore[arg-type]

    async def read(self, context: ToolContext) -> ResourceOutput:
        """Call the function."""
        return await _read(self, {}, context)

    async def execute(self, arguments: Any, context: ToolContext) -> ResourceContents:
        """Call the function, and bring whatever comes into one form."""
        return contents_of(await self.read(context), context.uri, self.mime_type)


class FunctionResourceTemplate(CompletableFunction[P, R], IResourceTemplate[dict[str, Any]]):
    """The template that `@resource` makes of a function; calling it calls the function."""

    collector = "resources_of"

    def __init__(self, uri: str, function: Callable[P, R], options: ResourceOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.uri_template = uri

    def __get__(self, instance: object | None, owner: type) -> "FunctionResourceTemplate[..., R]":
        if instance is None or self._bound:
            return self
        function = self.function.__get__(instance, owner)
        method = FunctionResourceTemplate(self.uri_template, function, self._options)  # type: ignore[arg-type]
        method.completers = self.completers_for(instance)
        return method

    async def read(self, variables: dict[str, Any], context: ToolContext) -> ResourceOutput:
        """Call the function."""
        return await _read(self, variables, context)

    async def execute(self, arguments: Any, context: ToolContext) -> ResourceContents:
        """Call the function, and bring whatever comes into one form."""
        return contents_of(await self.read(arguments, context), context.uri, self.mime_type)


def resource(
    uri: str, /, **options: Unpack[ResourceOptions]
) -> Callable[[Callable[P, R]], FunctionResource[P, R] | FunctionResourceTemplate[P, R]]:
    """Make a resource of a function or a method; if the URI has `{variables}`, they are its parameters.

    Raises:
        ConfigurationError: if the parameters do not fit the URI, or there is no such option.
    """
    if not isinstance(uri, str):
        raise ConfigurationError('@resource needs the URI: write @resource("config://app")')
    from axolotl_core.uri_template import has_variables  # servers without resources start faster without it

    check_options("resource", options, ResourceOptions.__annotations__)
    misplaced, where = ("size", "without") if has_variables(uri) else ("unscreened", "with")
    if misplaced in options:
        raise ConfigurationError(f"@resource({uri!r}): {misplaced} is for a URI {where} variables")

    def decorate(target: Callable[P, R]) -> FunctionResource[P, R] | FunctionResourceTemplate[P, R]:
        check_function(target, "resource")
        kind = FunctionResourceTemplate if has_variables(uri) else FunctionResource
        return kind(uri, target, options, bound=not is_method(target))

    return decorate


def resources_of(instance: object) -> tuple[FunctionResource[..., Any] | FunctionResourceTemplate[..., Any], ...]:
    """Collect the `@resource` methods of an object, bound to it, in the order of their definition."""
    found = features_of(instance, CompletableFunction)
    return tuple(one for one in found if isinstance(one, FunctionResource | FunctionResourceTemplate))


async def _read(resource: CompletableFunction[..., Any], variables: dict[str, Any], context: ToolContext) -> Any:
    """Call the function; the bytes that a generator yields are put together, as its texts are."""
    output = await CompletableFunction.execute(resource, variables, context)
    if not resource.streams or isinstance(output, str):
        return output
    binary = resource.returned == list[bytes] or (output and all(isinstance(piece, bytes) for piece in output))
    return b"".join(output) if binary else output
