"""What each revision's schema says about the messages of a server.

The models of `mcp_types` know two schemas, that of the last handshake revision and that of the stateless one. What the
older revisions do not have yet is stated here as the members that each may show.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import mcp_types._v2025_11_25 as handshake_models
import mcp_types._v2026_07_28 as stateless_models
from mcp_types.methods import SERVER_NOTIFICATIONS, SERVER_RESULTS
from pydantic import TypeAdapter

from axolotl_core.protocol.versions import REVISIONS, Revision

_ORDER = [revision.name for revision in REVISIONS]

_SINCE: Mapping[str, Mapping[str, str]] = {
    "implementation": {"title": _ORDER[2], "icons": _ORDER[3], "description": _ORDER[3], "websiteUrl": _ORDER[3]},
    "tool": {
        "annotations": _ORDER[1],
        "title": _ORDER[2],
        "outputSchema": _ORDER[2],
        "_meta": _ORDER[2],
        "icons": _ORDER[3],
    },
    "call": {"structuredContent": _ORDER[2], "resultType": _ORDER[4]},
    "block": {"_meta": _ORDER[2], "icons": _ORDER[3]},
    "annotations": {"lastModified": _ORDER[2]},
    "progress": {"message": _ORDER[1]},
    "list": {"resultType": _ORDER[4], "ttlMs": _ORDER[4], "cacheScope": _ORDER[4]},
}
_BLOCKS_SINCE = {"text": _ORDER[0], "image": _ORDER[0], "resource": _ORDER[0], "audio": _ORDER[1]}
_BLOCKS_SINCE |= {"resource_link": _ORDER[2]}

_FREE = {"inputSchema", "outputSchema", "structuredContent", "_meta", "data", "capabilities"}
"""Members whose inside is the business of tools and clients."""


class WireRules:
    """Judges the messages of one connection."""

    def __init__(self, revision: Revision) -> None:
        self._revision = revision
        self._methods: dict[Any, str] = {}
        self._names: dict[Any, str] = {}
        self._output_schemas: dict[str, Any] = {}

    def sent(self, message: Any) -> None:
        """Note what the client asked."""
        for one in message if isinstance(message, list) else [message]:
            match one:
                case {"id": str() | int() as request_id, "method": str() as method}:
                    self._methods[_key(request_id)] = method
                    match one:
                        case {"params": {"name": str() as name}}:
                            self._names[_key(request_id)] = name

    def check(self, message: Any) -> None:
        """Compare a message with its schema.

        Raises:
            AssertionError or ValidationError: if it breaks a rule.
        """
        if isinstance(message, list):
            assert self._revision.batches
            for one in message:
                self.check(one)
            return
        assert message["jsonrpc"] == "2.0"
        assert len({"result", "error", "method"} & message.keys()) == 1
        if "error" in message:
            self._check_error(message)
        elif "method" in message:
            self._check_notification(message)
        else:
            self._check_result(message)

    def _check_error(self, message: Any) -> None:
        models: Any = stateless_models if self._revision.stateless else handshake_models
        _compare(models.JSONRPCErrorResponse, message)
        assert message.get("id", 0) is not None, "an id that is not known is left out"
        code = message["error"]["code"]
        assert code in {-32700, -32600, -32601, -32602, -32603} or (
            self._revision.stateless and code in {-32020, -32021, -32022}
        )

    def _check_notification(self, message: Any) -> None:
        assert "id" not in message, "the server asks nothing"
        _compare(SERVER_NOTIFICATIONS[message["method"], self._revision.name], message)
        if message["method"] == "notifications/progress":
            self._only("progress", message["params"])

    def _check_result(self, message: Any) -> None:
        key = _key(message["id"])
        method, result = self._methods[key], message["result"]
        if method == "initialize":
            self._revision = next(one for one in REVISIONS if one.name == result["protocolVersion"])
            self._only("implementation", result["serverInfo"])
        _compare(SERVER_RESULTS[method, self._revision.name], result)
        if method == "tools/list":
            self._check_list(result)
        elif method == "tools/call":
            self._check_call(result, self._names[key])

    def _check_list(self, result: Any) -> None:
        self._only("list", result)
        for tool in result["tools"]:
            self._only("tool", tool)
            self._output_schemas[tool["name"]] = tool.get("outputSchema")
            if not self._revision.any_structured_root:
                assert tool.get("outputSchema", {"type": "object"})["type"] == "object"

    def _check_call(self, result: Any, name: str) -> None:
        self._only("call", result)
        structured = result.get("structuredContent", {})
        assert self._revision.any_structured_root or isinstance(structured, dict)
        schema = self._output_schemas.get(name)
        if schema is not None and not result.get("isError"):
            jsonschema_rs.validate(schema, result["structuredContent"])
        for block in result["content"]:
            assert _ORDER.index(_BLOCKS_SINCE[block["type"]]) <= _ORDER.index(self._revision.name)
            self._only("block", block)
            self._only("block", block.get("resource", {}))
            self._only("annotations", block.get("annotations", {}))

    def _only(self, kind: str, members: Collection[str]) -> None:
        """Find members that a later revision brought."""
        for member in members:
            since = _SINCE[kind].get(member, _ORDER[0])
            assert _ORDER.index(since) <= _ORDER.index(self._revision.name), f"{kind} has no {member!r} yet"


def _compare(model: Any, data: Any) -> None:
    """Validate with a model, and find members that the model does not know."""
    adapter = _adapter(model)
    known = adapter.dump_python(adapter.validate_python(data, by_name=False), by_alias=True, exclude_unset=True)
    _find_unknown(data, known, "$")


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _find_unknown(data: Any, known: Any, path: str) -> None:
    if isinstance(data, dict) and isinstance(known, dict):
        assert data.keys() <= known.keys(), f"{path}: the schema has no {sorted(data.keys() - known.keys())}"
        for key in data.keys() - _FREE:
            _find_unknown(data[key], known[key], f"{path}.{key}")
    elif isinstance(data, list):
        for index, (one, other) in enumerate(zip(data, known, strict=True)):
            _find_unknown(one, other, f"{path}[{index}]")


def _key(request_id: Any) -> tuple[type, Any]:
    return type(request_id), request_id
