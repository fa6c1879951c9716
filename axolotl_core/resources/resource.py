"""Resources: `IResource`, `IResourceTemplate`, `@resource`, and rejection of path traversal."""

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, Unpack
from urllib.parse import unquote

import msgspec
from pydantic import Field

from axolotl_core.arguments import NoArguments, ParseArguments, check_textual
from axolotl_core.calls.context import Context
from axolotl_core.content import APP_MIME_TYPE, APP_SCHEME, Annotations, BlobResource, TextResource
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.completion import CompletableFunction, ICompletable, check_model
from axolotl_core.features.feature import (
    UNSENDABLE,
    IFeature,
    Kind,
    Names,
    check_attributes,
    check_awaited,
    check_kind,
    declared_types,
    output_error,
)
from axolotl_core.features.function_feature import FeatureOptions, decorate, features_of
from axolotl_core.protocol.wire import json_text
from axolotl_core.resources.uri_form import MAX_URI_CHARACTERS, canonical_uri
from axolotl_core.schema import JsonSchema, P, R

if TYPE_CHECKING:
    from axolotl_core.resources.uri_template import UriTemplate

VariablesT = TypeVar("VariablesT")

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^ ]+")
_MAX_DECODINGS: Final = 3
_SEPARATOR: Final = re.compile(r"[/\\]")
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|\A/|\A[A-Za-z]:")

ResourceContents: TypeAlias = tuple[TextResource | BlobResource, ...]
ResourceOutput: TypeAlias = Any
"""The possible outputs of a resource: text, bytes, contents with their own URIs, or any JSON value or model."""


class CacheHint(msgspec.Struct, frozen=True):
    """How long a client may cache a result. `public` means that it is the same for all callers."""

    ttl_seconds: float
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if self.ttl_seconds < 0:
            raise ValueError(f"CacheHint: ttl_seconds is {self.ttl_seconds:g}; it must not be negative")


class _AnyResource(IFeature):
    """The common attributes of resources and resource templates."""

    _code = ("read", "execute")
    _kind: ClassVar[Kind] = "resource"

    mime_type: str | None = None
    annotations: Annotations | None = None
    cache: CacheHint | None = None
    """How long clients may cache the contents; None for the server's settings."""

    def _contents(self, output: ResourceOutput, context: Context) -> ResourceContents:
        try:
            return contents_of(output, context.uri, self.mime_type)
        except UNSENDABLE as error:
            raise output_error(error, output, self) from None


class IResource(_AnyResource):
    """A resource with a fixed URI: `class Settings(IResource)` with a `uri`, a name and `read`."""

    uri: str
    size: Annotated[int, Field(ge=0)] | None = None
    """The size in bytes, if it is known beforehand."""
    input_model = NoArguments

    @abstractmethod
    def read(self, context: Context) -> ResourceOutput:
        """Return the contents: text, bytes, `TextResource`, `BlobResource`, a sequence of these, or any JSON value.

        Raises:
            ResourceNotFound: if the resource does not exist at present.
            ToolError: to report a problem to the caller. Any other exception is logged and hidden.
        """

    def argument_parser(self, *, coerce: bool) -> ParseArguments:
        return lambda raw: None

    async def execute(self, arguments: Any, context: Context) -> ResourceContents:
        """Read the resource and normalize the output."""
        return self._contents(check_awaited(self, await self.read(context)), context)


class IResourceTemplate(_AnyResource, ICompletable, Generic[VariablesT]):
    """Resources with similar URIs: `class Profile(IResourceTemplate[ProfileVariables])` with a `uri_template`.

    The variables of the RFC 6570 template are a pydantic model. They arrive as strings and are converted.
    """

    uri_template: str
    unscreened: Names = frozenset()
    """Variables that accept path traversal, such as `../x`. It is rejected in all others."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        models = declared_types(cls, IResourceTemplate, "read", "variables", "Variables")
        if models is not None:
            (cls.input_model,) = models

    @abstractmethod
    def read(self, variables: VariablesT, context: Context) -> ResourceOutput:
        """Return the contents of one resource, like `IResource.read`. `context.uri` is its URI.

        Raises:
            ResourceNotFound: if the resource does not exist.
            ToolError: to report a problem to the caller. Any other exception is logged and hidden.
        """

    async def execute(self, arguments: Any, context: Context) -> ResourceContents:
        """Read the resource and normalize the output."""
        return self._contents(check_awaited(self, await self.read(arguments, context)), context)


def contents_of(output: Any, uri: str, mime_type: str | None) -> ResourceContents:
    """Normalize the output of a resource.

    Raises:
        ValueError: if it cannot be serialized to JSON.
    """
    mime_type = mime_type or (APP_MIME_TYPE if uri.startswith(APP_SCHEME) else None)
    if isinstance(output, TextResource | BlobResource):
        return (output,)
    if isinstance(output, str):
        return (TextResource(uri, output, mime_type or "text/plain"),)
    if isinstance(output, bytes | bytearray | memoryview):
        return (BlobResource(uri, bytes(output), mime_type or "application/octet-stream"),)
    if isinstance(output, Sequence) and output and all(isinstance(one, TextResource | BlobResource) for one in output):
        return tuple(output)
    return (TextResource(uri, json_text(output).decode(), mime_type or "application/json"),)


def check_resource(resource: Any) -> None:
    """Check a resource or resource template before it is registered.

    Raises:
        ConfigurationError: if it is incomplete.
    """
    remedy = "subclass IResource or IResourceTemplate, or use @resource"
    check_kind(resource, "resource", remedy, IResource, IResourceTemplate)
    if isinstance(resource, IResourceTemplate) and isinstance(resource, IResource):
        raise ConfigurationError(f"{type(resource).__name__} is both a resource and a template: make it one of them")
    is_template = isinstance(resource, IResourceTemplate)
    (_check_template if is_template else _check_fixed)(resource)
    uri = resource.uri_template if is_template else resource.uri
    if uri.startswith(APP_SCHEME) and resource.mime_type not in (None, APP_MIME_TYPE):
        raise ConfigurationError(f"{uri}: the MIME type of a ui:// resource is {APP_MIME_TYPE}")
    check_attributes(resource, IResourceTemplate if is_template else IResource)


def _check_fixed(resource: IResource) -> None:
    kind, uri = type(resource).__name__, getattr(resource, "uri", None)
    if not isinstance(uri, str) or not _URI.fullmatch(uri) or not uri.isprintable():
        raise ConfigurationError(f'{kind} has the URI {uri!r}: use one with a scheme, such as uri = "config://app"')
    if "{" in uri or "}" in uri:
        raise ConfigurationError(f"{kind} has the URI {uri!r}: for a URI with variables, subclass IResourceTemplate")
    if canonical_uri(uri) is None:
        raise ConfigurationError(
            f"{kind} has the URI {uri[:100]!r}: use at most {MAX_URI_CHARACTERS} characters, %25 for % and no backslash"
        )


def _check_template(template: IResourceTemplate[Any]) -> None:
    kind, text = type(template).__name__, getattr(template, "uri_template", None)
    if not isinstance(text, str):
        raise ConfigurationError(f'{kind} has no URI template: write uri_template = "users://{{user_id}}"')
    check_model(template, "variables", "IResourceTemplate[Variables]")
    from axolotl_core.resources.uri_template import UriTemplate  # servers without templates start faster

    form, schema, owner = UriTemplate(text), template.arguments_schema, f"Resource template {text!r}"
    check_textual(owner, schema, lists=form.exploded)
    for finding in _findings_about(form, schema, template.unscreened):
        raise ConfigurationError(f"{owner}: {finding}")


def _findings_about(form: "UriTemplate", schema: JsonSchema, unscreened: Iterable[str]) -> Iterator[str]:
    """Compare the variables of a template with the arguments of its code."""
    variables, fields = {*form.variables}, {*schema.get("properties", {})}
    required = {*schema.get("required", ())}
    if not variables:
        yield "it has no variables; for a fixed URI, subclass IResource"
    yield from (f"{name} is in the template, but not in the variables" for name in sorted(variables - fields))
    yield from (f"{name} is in the variables, but not in the template" for name in sorted(required - variables))
    yield from (f"{name} is optional in the URI; add a default" for name in sorted(required & form.optional))
    yield from (f"unscreened contains {name}, which is not a variable" for name in sorted(set(unscreened) - variables))


def screen(values: Mapping[str, str | Sequence[str]], unscreened: Collection[str]) -> str | None:
    """Return the first variable whose value attempts path traversal, ignoring those in `unscreened`.

    Such a value contains a segment `.` or `..`, a control character or a backslash, or begins with a slash or a drive
    letter. Percent-encoding does not hide any of this, and values encoded more than three times are rejected.
    """
    for name, value in values.items():
        # the paths that code may build from it: a string, each item of a list, and the joined items
        paths = [value] if isinstance(value, str) else [*value, "/".join(value)]
        if name not in unscreened and any(map(_is_traversal, paths)):
            return name
    return None


def _is_traversal(text: str) -> bool:
    for _ in range(_MAX_DECODINGS + 1):
        if _FORBIDDEN.search(text) or not {".", ".."}.isdisjoint(_SEPARATOR.split(text)):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True


class ResourceOptions(FeatureOptions, total=False):
    """The options of `@resource`: attributes of `IResource` and `IResourceTemplate`."""

    mime_type: str
    size: int
    annotations: Annotations
    cache: CacheHint
    unscreened: frozenset[str]


class FunctionResource(CompletableFunction[P, R], IResource):
    """The resource that `@resource` creates. Calling it calls the function."""

    collector = "resources_of"

    def __init__(self, uri: str, function: Callable[P, R], options: ResourceOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.uri = uri
        if self.signature.parameters:
            first = self.signature.parameters[0].name
            raise ConfigurationError(f"@resource({uri!r}): the URI has no {{{first}}}, which {self.name} needs")

    def __get__(self, instance: object | None, owner: type) -> "FunctionResource[..., R]":
        bound: FunctionResource[..., R] = self.bind(instance, owner)
        return bound

    async def read(self, context: Context) -> ResourceOutput:
        return await _read(self, {}, context)


class FunctionResourceTemplate(CompletableFunction[P, R], IResourceTemplate[dict[str, Any]]):
    """The resource template that `@resource` creates. Calling it calls the function."""

    collector = "resources_of"

    def __init__(self, uri: str, function: Callable[P, R], options: ResourceOptions, *, bound: bool = True) -> None:
        super().__init__(function, options, bound=bound)
        self.uri_template = uri

    def __get__(self, instance: object | None, owner: type) -> "FunctionResourceTemplate[..., R]":
        bound: FunctionResourceTemplate[..., R] = self.bind(instance, owner)
        return bound

    async def read(self, variables: dict[str, Any], context: Context) -> ResourceOutput:
        return await _read(self, variables, context)


def resource(
    uri: str, /, **options: Unpack[ResourceOptions]
) -> Callable[[Callable[P, R]], FunctionResource[P, R] | FunctionResourceTemplate[P, R]]:
    """Turn a function or method into a resource. If the URI has `{variables}`, they are its parameters.

    Raises:
        ConfigurationError: if the parameters do not match the URI, or an option does not exist.
    """
    if not isinstance(uri, str):
        raise ConfigurationError('@resource needs the URI: write @resource("config://app")')
    from axolotl_core.resources.uri_template import has_variables  # servers without resources start faster

    kind = FunctionResourceTemplate if has_variables(uri) else FunctionResource
    decorated: Callable[[Callable[P, R]], FunctionResource[P, R] | FunctionResourceTemplate[P, R]]
    decorated = decorate("resource", partial(kind, uri), options, ResourceOptions)
    misplaced, where = ("size", "without") if has_variables(uri) else ("unscreened", "with")
    if misplaced in options:
        raise ConfigurationError(f"@resource({uri!r}): {misplaced} is for a URI {where} variables")
    return decorated


def resources_of(instance: object) -> tuple[FunctionResource[..., Any] | FunctionResourceTemplate[..., Any], ...]:
    """Return the `@resource` methods of an object, bound to it, in the order of their definition."""
    return features_of(instance, FunctionResource, FunctionResourceTemplate)


async def _read(resource: CompletableFunction[..., Any], variables: dict[str, Any], context: Context) -> Any:
    """Call the function, and join bytes that a generator yields."""
    output = await resource.call_function(variables, context)
    if not resource.streams or isinstance(output, str):
        return output
    binary = resource.returned == list[bytes] or (output and all(isinstance(piece, bytes) for piece in output))
    return b"".join(output) if binary else output
