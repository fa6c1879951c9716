"""The fields of messages from clients: those that a client can make large, found in the code that decodes them."""

import ast
import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_server.extensions.tasks.directed_tasks import TOPIC
from axolotl_server.protocol.params import listen_params

_ROOT: Final = Path(__file__).resolve().parents[3]
_DECODING: Final = frozenset({"read_params", "convert", "decode", "Decoder"})
_TRUSTED: Final = (
    "axolotl_core/contract/lock.py",
    "axolotl_core/output.py",
    "axolotl_server/audit/",
    "axolotl_server/client/",
    "axolotl_server/execution/",
    "axolotl_server/layers/idempotency/",
    "axolotl_server/calls/sealing.py",
    "axolotl_server/sessions/",
    "axolotl_server/stores/",
    "axolotl_server/extensions/tasks/engines/",
    *(f"axolotl_server/extensions/tasks/task_{name}.py" for name in ("call", "followers", "questions", "runner")),
)
"""Code that decodes what servers wrote themselves: files, stored records, messages of other workers, sealed states,
outputs of tools."""


ENCLOSING: Final[Mapping[str, tuple[str, ...]]] = {
    "limits.max_message_bytes": (
        *("Params.arguments", "Params.input_responses", "_RawMessage.params", "_UpdateParams.input_responses"),
        *("RequestMeta.version", "RequestMeta.log_level", "LevelParams.level", "ListParams.cursor"),
        "_DirectoryParams.cursor",
        *("CancelledParams.request_id", "CancelledParams.reason", "PromptParams.name", "PromptParams.arguments"),
        *("_Reference.type", "_Reference.name", "_Reference.uri", "_Argument.name", "_Argument.value"),
        *("_Context.arguments", "_CallParams.name"),
        *("_TaskParams.task_id", "KnownFilter.taskIds", "_MetaParams.meta"),
        *("_Roots.roots", "Root.uri", "Root.name", "Annotations.audience", "Annotations.last_modified"),
        *("_CreatedMessage.content", "_CreatedMessage.model", "_CreatedMessage.stop_reason"),
        *("TextContent.text", "TextContent.meta", "ImageContent.data", "ImageContent.mime_type", "ImageContent.meta"),
        *("AudioContent.data", "AudioContent.mime_type", "AudioContent.meta"),
        *("ToolUse.id", "ToolUse.name", "ToolUse.input", "ToolUse.meta"),
    ),
    "axolotl_server.protocol.connection:MAX_CLIENT_BYTES": (
        *("RequestMeta.capabilities", "RequestMeta.client_info", "InitializeParams.protocol_version"),
        *("InitializeParams.capabilities", "Implementation.name", "Implementation.version", "Implementation.title"),
        *("Implementation.description", "Implementation.website_url", "Implementation.icons"),
        *("Icon.src", "Icon.mime_type", "Icon.sizes"),
    ),
    "axolotl_core.resources.uri_form:MAX_URI_CHARACTERS": ("ResourceParams.uri", "_DirectoryParams.uri"),
    "axolotl_core.protocol.messages:_MAX_TRACE": (
        *("_TraceMeta.traceparent", "_TraceMeta.tracestate", "_TraceMeta.baggage"),
    ),
    "axolotl_server.calls.sealing:MAX_TOKEN_LENGTH": ("Params.request_state",),
    "axolotl_server.protocol.connection:MAX_RESOURCES": ("KnownFilter.resource_subscriptions",),
}
"""The bound of each field that has no length of its own. The size of a message is one, if nothing keeps the value."""


def wire_structs() -> list[type[msgspec.Struct]]:
    """Find the structs that messages of clients are decoded into, with those inside of them."""
    found: dict[type[msgspec.Struct], None] = {}
    _collect(listen_params([TOPIC]), found)  # made when a server starts
    for package in ("axolotl_core", "axolotl_server"):
        for file in sorted((_ROOT / package).rglob("*.py")):
            path = file.relative_to(_ROOT).as_posix()
            if not path.startswith(_TRUSTED):
                for one in _decoded_in(path, file.read_text(encoding="utf-8")):
                    _collect(one, found)
    return list(found)


def growing_fields() -> dict[str, str]:
    """List the fields that have no length of their own, as `Struct.field`, with their types."""
    return {
        f"{struct.__name__}.{field.name}": str(field.type)
        for struct in wire_structs()
        for field in msgspec.structs.fields(struct)
        if _grows(field.type)
    }


def _decoded_in(path: str, text: str) -> Iterator[Any]:
    """Yield the types that a module decodes."""
    tree = ast.parse(text)
    names = [name for call in ast.walk(tree) if isinstance(call, ast.Call) for name in _types_of(call)]
    if names:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        yield from (vars(module)[name] for name in names if name in vars(module))


def _types_of(call: ast.Call) -> Iterator[str]:
    """Yield the names of types in the arguments of a call that decodes."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function in _DECODING:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "type")]
        yield from (node.id for one in arguments for node in ast.walk(one) if isinstance(node, ast.Name))


def _collect(candidate: Any, found: dict[type[msgspec.Struct], None]) -> None:
    if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
        if candidate not in found:
            found[candidate] = None
            for field in msgspec.structs.fields(candidate):
                _collect(field.type, found)
        return
    for part in typing.get_args(candidate):
        _collect(part, found)


def _grows(kind: Any) -> bool:
    """Whether a value of a type can be arbitrarily large."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        limits = [one.max_length for one in parts[1:] if isinstance(one, msgspec.Meta)]
        return not any(limit is not None for limit in limits) and _grows(parts[0])
    if origin in (typing.Union, types.UnionType):
        return any(_grows(part) for part in parts)
    if origin is typing.Literal or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return kind in (str, bytes, Any, msgspec.Raw) or (origin or kind) in (list, tuple, dict, set, frozenset, Mapping)
