"""Features compiled for calls: effective limits, folded layers, encoder."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from axolotl_core.content import ContentBlock, TextContent, ToolResult, is_structured
from axolotl_core.errors import ConfigurationError, ResultTooLarge
from axolotl_core.features.attributes import place_of
from axolotl_core.features.feature import UNSENDABLE, IFeature, Kind, check_awaited, output_error
from axolotl_core.features.spec import FeatureSpec, Limits, ToolSpec
from axolotl_core.layers import Call, Invoke, Layer, fold
from axolotl_core.output import LONGEST_ESCAPE, bounded, has_fixed_size, result_of
from axolotl_core.protocol.wire import encode, json_text, json_writer
from axolotl_core.registry import AnyTool
from axolotl_core.schema import explain_type_error
from axolotl_server.protocol.eras.presentation import content_for
from axolotl_server.protocol.request import Request
from axolotl_server.settings.calls import ToolOverrides, ToolsetOverrides
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_core.resources.uri_template import UriTemplate

_EncodeResult: TypeAlias = Callable[[Any, Request], bytes]


def result_encoder(spec: ToolSpec) -> _EncodeResult:
    """Compile the function that encodes the outputs of a tool."""
    return _structured_encoder(spec) if is_structured(spec.tool.output_model) else encode_output


# Parts are joined, which is faster than formatting.
_TEXT: Final = b'{"content":[{"type":"text","text":'
_STRUCTURED: Final = b'}],"structuredContent":'


def _structured_encoder(spec: ToolSpec) -> _EncodeResult:
    adapter = spec.tool.output_adapter
    declared = spec.tool.output_model
    check, write = adapter.validator.validate_python, json_writer(adapter)
    is_object = (spec.output_schema or {}).get("type") == "object"

    def encode_structured(output: Any, request: Request) -> bytes:
        if type(output) is not declared:
            if isinstance(output, ToolResult):
                return _encode_result(output, request, always_wraps=not is_object)
            output = check(output)
        body = write(output)
        text, era = encode(body.decode()), request.era
        if not era.revision.structured_output:
            return b"".join((_TEXT, text, b"}]", era.tool_tail))
        if not is_object and not era.revision.any_structured_root:
            body = b'{"result":%b}' % body
        return b"".join((_TEXT, text, _STRUCTURED, body, era.tool_tail))

    return encode_structured


def encode_output(output: Any, request: Request) -> bytes:
    """Encode an output by its type: text, nothing, content blocks, a whole result, or any JSON value."""
    era = request.era
    if isinstance(output, str):
        return b"".join((_TEXT, encode(output), b"}]", era.tool_tail))
    result = result_of(output)
    if result.structured is not output:
        return _encode_result(result, request)
    (text,) = result.content  # which is what the output is as JSON
    assert isinstance(text, TextContent)
    return _encode_result(result, request, body=text.text.encode())


def encode_error(message: str, meta: Mapping[str, Any] | None, request: Request) -> bytes:
    """Encode a failure for the model to read."""
    request.is_error, era = True, request.era
    closing = era.tail if meta is None else era.tail_with_meta(meta)
    return b'{"content":[{"type":"text","text":%b}],"isError":true%b' % (_quoted(message), closing)


def _encode_result(
    result: ToolResult, request: Request, always_wraps: bool = False, body: bytes | None = None
) -> bytes:
    """Encode a result, whose structured content may be encoded already.

    Where the revision wraps the schema of its tool, every value is wrapped.
    """
    era = request.era
    blocks: list[ContentBlock] = [content_for(block, era.revision) for block in result.content]
    parts = [b'{"content":', encode(blocks)]
    if result.structured is not UNSET and era.revision.structured_output:
        body = json_text(result.structured) if body is None else body
        if era.revision.any_structured_root or (body[:1] == b"{" and not always_wraps):
            parts += (b',"structuredContent":', body)
        else:
            parts += (b',"structuredContent":{"result":', body, b"}")
    if result.is_error:
        request.is_error = True
    parts.append(b',"isError":true' if result.is_error else era.success)
    parts.append(era.tail if result.meta is None else era.tail_with_meta(result.meta))
    return b"".join(parts)


def _quoted(text: str) -> bytes:
    try:
        return encode(text)
    except UnicodeEncodeError:  # lone surrogates; a failure must be answered
        return encode(text.encode("utf-8", "replace").decode())


SpecT_co = TypeVar("SpecT_co", bound=FeatureSpec, covariant=True)
SpecT = TypeVar("SpecT", bound=FeatureSpec)

EncodeOutput: TypeAlias = Callable[[Any, Request], bytes]
"""Encodes an output as the result of a request, or raises if the output does not match the schema of its feature."""


class Binding(msgspec.Struct, Generic[SpecT_co], frozen=True, eq=False, weakref=True):
    """A feature compiled for calls, found by one lookup."""

    spec: SpecT_co
    invoke: Invoke
    encode: EncodeOutput
    layers: tuple[Layer, ...]
    """The layers that apply to the feature, the outermost first."""
    completion: "Binding[FeatureSpec] | None" = None
    """Completes the arguments of a prompt, or the variables of a resource template."""
    template: "UriTemplate | None" = None
    """Matches the URIs of a resource template."""


ToolBinding: TypeAlias = Binding[ToolSpec]
Runners: TypeAlias = Mapping[str, Callable[[FeatureSpec], Invoke]]
"""The functions that run the code of a feature, by the kind of execution."""

_NO_OVERRIDES = ToolOverrides.model_construct()
_NO_SET_OVERRIDES = ToolsetOverrides.model_construct()


class Layers(NamedTuple):
    """The layers around every feature, the outermost first: those that see results as bytes, and those inside."""

    outer: tuple[Layer, ...]
    inner: tuple[Layer, ...]


class Binder:
    """Compiles features."""

    def __init__(self, settings: ServerSettings, layers: Layers, runners: Runners, toolsets: Mapping[int, str]) -> None:
        self._layers = layers
        self._settings = settings
        self._runners = runners
        self._toolsets = toolsets
        """The names of the tool sets, by the identity of each feature in them."""

    def bind_tool(self, tool: AnyTool) -> ToolBinding:
        """Compile a tool, or raise ConfigurationError if its schemas or limits cannot be used."""
        try:
            overrides = self._settings.tools.overrides_for(tool.name)
            coerce = _first(tool.coerce_arguments, self._settings.tools.coerce_arguments)
            toolset = self._toolsets.get(id(tool))
            limits = self._limits_of(tool, coerce, overrides, toolset)
            inline = self._settings.tools.inline_references
            spec = ToolSpec.of(tool, limits, toolset, inline_references=inline)
            return self._compile(spec, result_encoder(spec))
        except ConfigurationError:
            raise
        except Exception as error:
            raise _uncompiled("tool", tool.name, tool, error) from error

    def bind(self, feature: IFeature, kind: Kind, name: str, encode: EncodeOutput) -> Binding[FeatureSpec]:
        """Compile another feature, whose arguments arrive as text, or raise ConfigurationError if it cannot be used."""
        try:
            toolset = self._toolsets.get(id(feature))
            limits = self._limits_of(feature, True, _NO_OVERRIDES, toolset)
            return self._compile(FeatureSpec(feature, kind, name, limits, toolset), encode)
        except ConfigurationError:
            raise
        except Exception as error:
            raise _uncompiled(kind, name, feature, error) from error

    def _limits_of(self, feature: IFeature, coerce: bool, overrides: ToolOverrides, toolset: str | None) -> Limits:
        """Return the effective limits: the operator comes first, then the feature, then the defaults."""
        of_set = self._settings.toolsets.get(toolset or "", _NO_SET_OVERRIDES)
        default = self._settings.limits
        ceiling = feature.max_timeout_seconds
        return Limits(
            timeout_seconds=_first(
                overrides.timeout_seconds, of_set.timeout_seconds, feature.timeout_seconds, default.timeout_seconds
            ),
            max_timeout_seconds=None if ceiling is None else min(ceiling, default.max_timeout_seconds),
            max_concurrency=_first(overrides.max_concurrency, feature.max_concurrency),
            queue_limit=_first(overrides.queue_limit, feature.queue_limit, default.queue_limit),
            queue_timeout_seconds=_first(feature.queue_timeout_seconds, default.queue_timeout_seconds),
            pool=feature.pool,
            max_result_bytes=_first(feature.max_result_bytes, default.max_result_bytes),
            execution=feature.execution,
            coerce_arguments=coerce,
        )

    def _compile(self, spec: SpecT, encode: EncodeOutput) -> Binding[SpecT]:
        invoke, inner = fold(self._layers.inner, spec, self._runners[spec.limits.execution](spec))
        write = _within(spec.limits.max_result_bytes or sys.maxsize, encode, spec.feature)
        encoded, outer = fold(self._layers.outer, spec, _encoding(invoke, write))
        if outer:
            return Binding(spec, encoded, _already_encoded, (*outer, *inner))
        return Binding(spec, invoke, write, inner)


def _uncompiled(kind: Kind, name: str, feature: IFeature, error: Exception) -> ConfigurationError:
    reason = explain_type_error(error)
    return ConfigurationError(f"{kind.title()} {name!r}{place_of(feature)} cannot be compiled: {reason}")


def _within(max_bytes: int, encode: EncodeOutput, feature: IFeature) -> EncodeOutput:
    """Refuse outputs that are too large, most of them before they are encoded."""
    is_small = max_bytes // LONGEST_ESCAPE
    declared = getattr(feature, "output_model", None)
    fixed = declared if has_fixed_size(declared) else None

    def encode_within(output: Any, request: Request) -> bytes:
        kind = type(output)
        if kind is not fixed and (kind is not str or len(output) > is_small):
            output = bounded(output, max_bytes)
        try:
            result = encode(output, request)
        except UNSENDABLE as error:
            check_awaited(feature, output)
            raise output_error(error, output, feature) from None
        if len(result) > max_bytes:
            raise ResultTooLarge(len(result), max_bytes)
        return result

    return encode_within


def _encoding(invoke: Invoke, encode: EncodeOutput) -> Invoke:
    async def encoded(call: Call) -> Any:
        output = await invoke(call)
        if call.token is not None and call.cancelled:
            return output
        assert isinstance(call.caller, Request)
        return encode(output, call.caller)

    return encoded


def _already_encoded(output: Any, request: Request) -> bytes:
    result: bytes = output
    return result


def _first(*candidates: Any) -> Any:
    return next((candidate for candidate in candidates if candidate is not None), None)
