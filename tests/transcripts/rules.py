"""The rules of each revision's schema for messages of a server.

The models of `mcp_types` cover the last handshake revision and the stateless one. For older revisions, this module
lists the members that they allow.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import mcp_types._v2025_11_25 as handshake_models
import mcp_types._v2026_07_28 as stateless_models
from mcp_types.methods import CACHEABLE_METHODS, SERVER_NOTIFICATIONS, SERVER_REQUESTS, SERVER_RESULTS
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
    "prompt": {"title": _ORDER[2], "_meta": _ORDER[2], "icons": _ORDER[3]},
    "argument": {"title": _ORDER[2]},
    "resource": {"title": _ORDER[2], "_meta": _ORDER[2], "icons": _ORDER[3]},
    "contents": {"_meta": _ORDER[2]},
    "form": {"mode": _ORDER[3]},
    "sample": {"tools": _ORDER[3], "toolChoice": _ORDER[3]},
    "annotations": {"lastModified": _ORDER[2]},
    "progress": {"message": _ORDER[1]},
}
_BLOCKS_SINCE = {"text": _ORDER[0], "image": _ORDER[0], "resource": _ORDER[0], "audio": _ORDER[1]}
_BLOCKS_SINCE |= {"resource_link": _ORDER[2]}
_NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""The capability that a client must declare to be asked."""
_MOST_COMPLETIONS = 100

_FREE = {"inputSchema", "outputSchema", "structuredContent", "_meta", "data", "capabilities"}
"""Members with arbitrary content."""

_CACHEABLE_SKILLS = frozenset({"skills/list", "skills/get"})


class WireRules:
    """Checks the messages of one connection."""

    def __init__(self, revision: Revision) -> None:
        self._revision = revision
        self._requests: dict[Any, Any] = {}
        self._capabilities: Any = {}
        self._output_schemas: dict[str, Any] = {}
        self._progress: dict[Any, float] = {}
        self._listening: set[Any] = set()

    def sent(self, message: Any) -> None:
        """Record a request of the client."""
        for one in message if isinstance(message, list) else [message]:
            match one:
                case {"id": str() | int() as request_id, "method": str() as method}:
                    params = one.get("params")
                    self._requests[_key(request_id)] = method, params if isinstance(params, dict) else {}
                    self._listening.discard(_key(request_id))
                    self._note_meta(params)

    def check(self, message: Any) -> None:
        """Raise AssertionError or ValidationError if a message breaks a rule."""
        if isinstance(message, list):
            assert self._revision.batches
            for one in message:
                self.check(one)
            return
        assert message["jsonrpc"] == "2.0"
        assert len({"result", "error", "method"} & message.keys()) == 1
        if "error" in message:
            self._check_error(message)
        elif "method" in message and "id" in message:
            self._check_question(message)
        elif "method" in message:
            self._check_notification(message)
        else:
            self._check_result(message)

    def _note_meta(self, params: Any) -> None:
        match params:
            case {"protocolVersion": str(), "capabilities": dict() as capabilities}:
                self._capabilities = capabilities
            case {"_meta": {"progressToken": str() | int() as token}}:
                self._progress[_key(token)] = float("-inf")

    def _check_error(self, message: Any) -> None:
        models: Any = stateless_models if self._revision.stateless else handshake_models
        _compare(models.JSONRPCErrorResponse, message)
        assert message.get("id", 0) is not None, "an id that is not known is left out"
        code = message["error"]["code"]
        allowed = {-32020, -32021, -32022} if self._revision.stateless else {-32002, -32800}
        assert code in {-32700, -32600, -32601, -32602, -32603} | allowed

    def _check_question(self, message: Any) -> None:
        """A server asks only in handshake revisions, and only questions that the client supports."""
        method, params = message["method"], message.get("params", {})
        assert not self._revision.stateless, "the server asks nothing"
        _compare(SERVER_REQUESTS[method, self._revision.name], message)
        assert method == "ping" or isinstance(self._capabilities.get(_NEEDED[method]), dict), "nobody can answer this"
        self._check_asked(method, params)

    def _check_asked(self, method: str, params: Any) -> None:
        if method == "elicitation/create":
            self._only("form", params)
            for field in params.get("requestedSchema", {}).get("properties", {}).values():
                assert self._revision.rich_forms or "default" not in field or field["type"] == "boolean"
                assert self._revision.rich_forms or not {"oneOf", "items"} & field.keys()
        elif method == "sampling/createMessage":
            self._only("sample", params)
            for said in params["messages"]:
                assert self._revision.sampling_tools or isinstance(said["content"], dict)
                self._check_blocks([said["content"]] if isinstance(said["content"], dict) else said["content"])

    def _check_notification(self, message: Any) -> None:
        method, params = message["method"], message.get("params", {})
        _compare(SERVER_NOTIFICATIONS[method, self._revision.name], message)
        if method == "notifications/progress":
            self._only("progress", params)
            token = _key(params["progressToken"])
            assert self._progress[token] < params["progress"], "progress grows"
            self._progress[token] = params["progress"]
        elif self._revision.stateless and method not in ("notifications/message", "notifications/cancelled"):
            self._check_subscribed(method, params)

    def _check_subscribed(self, method: str, params: Any) -> None:
        """Notifications of a subscription carry its id, and follow an acknowledgement."""
        subscription = _key(params["_meta"]["io.modelcontextprotocol/subscriptionId"])
        assert self._requests[subscription][0] == "subscriptions/listen"
        if method == "notifications/subscriptions/acknowledged":
            assert subscription not in self._listening
            self._listening.add(subscription)
        assert subscription in self._listening, "an acknowledgement comes first"

    def _check_result(self, message: Any) -> None:
        method, params = self._requests[_key(message["id"])]
        result = message["result"]
        if method == "initialize":
            self._revision = next(one for one in REVISIONS if one.name == result["protocolVersion"])
            self._only("implementation", result["serverInfo"])
        models: Any = stateless_models if self._revision.stateless else handshake_models
        _compare(SERVER_RESULTS.get((method, self._revision.name), models.Result), result)
        assert self._revision.stateless or "resultType" not in result
        kept = (
            self._revision.stateless
            and method in CACHEABLE_METHODS | _CACHEABLE_SKILLS
            and result["resultType"] == "complete"
        )
        assert ({"ttlMs", "cacheScope"} & result.keys()) == ({"ttlMs", "cacheScope"} if kept else set())
        if result.get("resultType") == "input_required":
            self._check_round(result)
        elif method in _CHECKS:
            _CHECKS[method](self, result, params)

    def _check_round(self, result: Any) -> None:
        for asked in result.get("inputRequests", {}).values():
            assert asked.keys() <= {"method", "params"}
            self._check_asked(asked["method"], asked.get("params", {}))

    def _check_tools(self, result: Any, params: Any) -> None:
        for tool in result["tools"]:
            self._only("tool", tool)
            self._output_schemas[tool["name"]] = tool.get("outputSchema")
            if not self._revision.any_structured_root:
                assert tool.get("outputSchema", {"type": "object"})["type"] == "object"

    def _check_call(self, result: Any, params: Any) -> None:
        self._only("call", result)
        structured = result.get("structuredContent", {})
        assert self._revision.any_structured_root or isinstance(structured, dict)
        schema = self._output_schemas.get(params["name"])
        if schema is not None and not result.get("isError"):
            jsonschema_rs.validate(schema, result["structuredContent"])
        self._check_blocks(result["content"])

    def _check_prompts(self, result: Any, params: Any) -> None:
        for prompt in result["prompts"]:
            self._only("prompt", prompt)
            for argument in prompt.get("arguments", ()):
                self._only("argument", argument)

    def _check_messages(self, result: Any, params: Any) -> None:
        self._check_blocks([message["content"] for message in result["messages"]])

    def _check_resources(self, result: Any, params: Any) -> None:
        for resource in result.get("resources", result.get("resourceTemplates")):
            self._only("resource", resource)
            self._only("annotations", resource.get("annotations", {}))

    def _check_contents(self, result: Any, params: Any) -> None:
        assert result["contents"], "what is there has contents"
        for contents in result["contents"]:
            self._only("contents", contents)

    def _check_completion(self, result: Any, params: Any) -> None:
        assert len(result["completion"]["values"]) <= _MOST_COMPLETIONS

    def _check_blocks(self, blocks: Any) -> None:
        for block in blocks:
            assert _ORDER.index(_BLOCKS_SINCE[block["type"]]) <= _ORDER.index(self._revision.name)
            self._only("block", block)
            self._only("block", block.get("resource", {}))
            self._only("annotations", block.get("annotations", {}))

    def _only(self, kind: str, members: Collection[str]) -> None:
        """Find members of later revisions."""
        for member in members:
            since = _SINCE[kind].get(member, _ORDER[0])
            assert _ORDER.index(since) <= _ORDER.index(self._revision.name), f"{kind} has no {member!r} yet"


_CHECKS: Mapping[str, Callable[[WireRules, Any, Any], None]] = {
    "tools/list": WireRules._check_tools,
    "tools/call": WireRules._check_call,
    "prompts/list": WireRules._check_prompts,
    "prompts/get": WireRules._check_messages,
    "resources/list": WireRules._check_resources,
    "resources/templates/list": WireRules._check_resources,
    "resources/read": WireRules._check_contents,
    "completion/complete": WireRules._check_completion,
}


def _compare(model: Any, data: Any) -> None:
    """Validate with a model, and find unknown members."""
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
