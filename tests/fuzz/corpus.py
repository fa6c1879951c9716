"""Valid messages of all methods and revisions, from which the mutations start."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, LATEST_STATELESS_REVISION
from tests.fuzz.container import FAILING, PRIVATE

STATELESS: Final = LATEST_STATELESS_REVISION.name
HANDSHAKES: Final = tuple(revision.name for revision in HANDSHAKE_REVISIONS)
BATCHING: Final = tuple(revision.name for revision in HANDSHAKE_REVISIONS if revision.batches)
SESSION: Final = "@SESSION@"
"""Replaced by the ID of a session when a request is sent."""
TASK: Final = "@TASK@"
"""Replaced by the ID of a task when a message is sent."""
STATE: Final = "@STATE@"
"""Replaced by the state that the server sent with a question."""

_CLIENT: Final = {"name": "fuzz", "version": "1"}
_CAPABILITIES: Final = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
_TASKS: Final[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
_TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_ANSWER: Final = {"action": "accept", "content": {"word": "yes", "number": 3}}
_SAMPLE: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "this"},
    "model": "m",
    "stopReason": "endTurn",
}

_CALLS: Final[Sequence[tuple[str, Any]]] = (
    ("echo", {"text": "hello", "times": 2}),
    ("ECHO", {"text": PRIVATE}),
    ("add", {"a": 1, "b": 2}),
    ("total", {"values": [1, 2.5, -3], "labels": {"a": "b"}}),
    ("accept", {"data": {"a": [1, None, True, "x", {"b": []}]}}),
    ("keep", {"secret": PRIVATE}),
    (FAILING, {}),
    ("refusing", {}),
    ("asking", {}),
    ("sampling", {}),
    ("reporting", {}),
    ("waiting", {}),
    ("threaded", {"text": "hello"}),
    ("optional_task", {"text": "hello"}),
    ("unknown", {}),
)
_REFERENCES: Final = (
    {"type": "ref/prompt", "name": "greet"},
    {"type": "ref/resource", "uri": "users://{user_id}/profile"},
)


def initialize(revision: str) -> dict[str, Any]:
    """Return the parameters of a handshake."""
    return {"protocolVersion": revision, "capabilities": _CAPABILITIES, "clientInfo": _CLIENT}


@cache
def requests_of(revision: str) -> tuple[dict[str, Any], ...]:
    """Return requests and notifications of a revision, without `jsonrpc` and IDs."""
    if revision == STATELESS:
        return tuple(_with_meta(message) for message in (*_shared(), *_stateless()))
    return (*_shared(), *_with_handshake(revision))


def answers_to(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid answer to a question of the server."""
    results: dict[str, Any] = {"elicitation/create": _ANSWER, "sampling/createMessage": _SAMPLE}
    result = results.get(question["method"], {"roots": [{"uri": "file:///x"}]})
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


def _shared() -> list[dict[str, Any]]:
    messages = [_request("tools/call", name=name, arguments=arguments) for name, arguments in _CALLS]
    messages += [_request(f"{kind}/list") for kind in ("tools", "prompts", "resources", "resources/templates")]
    messages += [_request("tools/list", cursor="dG9vbHM6MTA"), _request("tools/call", name="echo")]
    for uri in (
        "config://app",
        "logo://app",
        "failing://app",
        "users://7/profile?full=true",
        "notes://a/b%20c",
        "none://x",
    ):
        messages.append(_request("resources/read", uri=uri))
    for name, arguments in (("greet", {"name": "Ada", "style": "long"}), (FAILING, {}), ("asking_prompt", {})):
        messages.append(_request("prompts/get", name=name, arguments=arguments))
    for reference in _REFERENCES:
        argument = {"name": "name", "value": "A"}
        context = {"arguments": {"style": "long"}}
        messages.append(_request("completion/complete", ref=reference, argument=argument, context=context))
    progress = {"progressToken": "p1", "traceparent": _TRACE, "baggage": "a=b"}
    messages.append({"method": "tools/call", "params": {"name": "reporting", "arguments": {}, "_meta": progress}})
    messages.append({"method": "notifications/cancelled", "params": {"requestId": "@PREVIOUS@", "reason": "late"}})
    return messages


def _with_handshake(revision: str) -> list[dict[str, Any]]:
    messages = [_request("ping"), {"method": "ping"}, _request("initialize", **initialize(revision))]
    messages += [_request("logging/setLevel", level=level) for level in ("debug", "warning")]
    messages += [_request(f"resources/{verb}", uri="config://app") for verb in ("subscribe", "unsubscribe")]
    for name in ("initialized", "roots/list_changed", "progress", "unknown"):
        messages.append({"method": f"notifications/{name}", "params": {"progressToken": 1, "progress": 2}})
    messages.append({"id": "q", "result": _ANSWER})
    messages.append({"id": 3, "error": {"code": -1, "message": "declined", "data": [1]}})
    messages += [_request(f"tasks/{verb}", taskId=TASK) for verb in ("get", "result", "cancel")]
    messages.append(_request("tasks/list", cursor=None))
    for name in ("optional_task", "required_task"):
        messages.append(_request("tools/call", name=name, arguments={}, task={"ttl": 1000}))
    return messages


def _stateless() -> list[dict[str, Any]]:
    filters = {"toolsListChanged": True, "resourceSubscriptions": ["config://app", "notes://a/"], "taskIds": [TASK]}
    messages = [_request("server/discover"), _request("subscriptions/listen", notifications=filters)]
    answers = {"0": _ANSWER, "word": {"action": "decline"}}
    for name in ("asking", "sampling", "required_task"):
        answered = {"inputResponses": answers, "requestState": STATE}
        messages.append(_request("tools/call", name=name, arguments={}, **answered))
        messages.append(_request("tools/call", name=name, arguments={}))
    messages += [_request(f"tasks/{verb}", taskId=TASK) for verb in ("get", "cancel")]
    messages.append(_request("tasks/update", taskId=TASK, inputResponses=answers))
    messages.append(_request("ping"))
    return messages


def _request(method: str, **params: Any) -> dict[str, Any]:
    return {"id": "@ID@", "method": method, **({"params": params} if params else {})}


def _with_meta(message: dict[str, Any]) -> dict[str, Any]:
    meta = {
        PROTOCOL_VERSION_KEY: STATELESS,
        CLIENT_CAPABILITIES_KEY: {**_CAPABILITIES, **_TASKS},
        CLIENT_INFO_KEY: _CLIENT,
        LOG_LEVEL_KEY: "info",
    }
    params = dict(message.get("params", {}))
    return {**message, "params": {**params, "_meta": {**meta, **params.get("_meta", {})}}}
