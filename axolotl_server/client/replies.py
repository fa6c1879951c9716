"""Replies, questions, answers and errors of a client, and the shape that results of a foreign server must have."""

import binascii
import inspect
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import msgspec
from pydantic import BaseModel

from axolotl_core.questions.question import Root
from axolotl_core.resources.resource import CacheHint
from axolotl_server.client.channel import InvalidReply

if TYPE_CHECKING:
    from axolotl_core.questions.sampling import Sample

ACCEPT: Final[Mapping[str, Any]] = {"action": "accept"}
"""The answer of a user who agrees to open a page."""
DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
"""The answer of a user who declines."""
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}
"""The answer of a user who dismisses the question."""

EVERYTHING: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""The capabilities of a client that can answer every kind of question."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the server."""

    key: str
    """The key that the code chose, or a numbered one: `ask-1`, `sample-1`, `roots-1`."""
    method: str
    """`elicitation/create`, `sampling/createMessage` or `roots/list`."""
    params: Mapping[str, Any]

    @property
    def message(self) -> str:
        """The text for the user; empty for questions to a model and for roots."""
        return str(self.params.get("message", ""))


Answer: TypeAlias = Union[Mapping[str, Any], BaseModel, "Sample", str, Sequence[Root]]
"""An answer to any question.

For a form: an instance of its model, or the content as a mapping. For a form or a page: `ACCEPT`, `DECLINE` or
`CANCEL`. For a question to a model: a `Sample`, or its text. For roots: the roots. A mapping may also be the whole
result of the protocol; for a form or a page, it is recognized by its `action`.
"""

Answering: TypeAlias = Callable[[Question], Answer | Awaitable[Answer]]
"""Answers a question; it may be asynchronous."""


async def answers_to(result: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Answer the questions of one round; returns params for the next request, or raises TypeError."""
    responses: dict[str, Any] = {}
    for key, asked in result.get("inputRequests", {}).items():
        responses[key] = await answer_to(Question(key, asked["method"], asked.get("params") or {}), answering)
    params: dict[str, Any] = {"inputResponses": responses} if responses else {}
    return {**params, "requestState": result["requestState"]} if "requestState" in result else params


async def answer_to(question: Question, answering: Answering) -> Mapping[str, Any]:
    """Answer one question, in the form of the protocol; raises TypeError."""
    answer = answering(question)
    return _response(question, await answer if inspect.isawaitable(answer) else answer)


def _response(question: Question, answer: Any) -> Mapping[str, Any]:
    from axolotl_core.questions.sampling import Sample  # few tools sample

    is_form = question.method == "elicitation/create"
    if isinstance(answer, Mapping):
        return {**ACCEPT, "content": answer} if is_form and "action" not in answer else answer
    if is_form:
        if isinstance(answer, BaseModel):
            return {**ACCEPT, "content": answer.model_dump(mode="json", by_alias=True, exclude_none=True)}
    elif question.method == "sampling/createMessage":
        if isinstance(answer, str):
            return {"role": "assistant", "content": {"type": "text", "text": answer}, "model": "in-process"}
        if isinstance(answer, Sample):
            content = msgspec.to_builtins(answer.content, str_keys=True)
            response = {"role": answer.role, "content": content, "model": answer.model}
            return response if answer.stop_reason is None else {**response, "stopReason": answer.stop_reason}
    elif isinstance(answer, Sequence) and all(isinstance(one, Root) for one in answer):
        return {
            "roots": [{"uri": one.uri} if one.name is None else {"uri": one.uri, "name": one.name} for one in answer]
        }
    raise TypeError(f"{type(answer).__name__} is not an answer to {question.key!r} ({question.method})")


class RemoteError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class TaskCancelled(Exception):
    """The task of a call was cancelled, so there is no result."""


class UnansweredQuestion(Exception):
    """The server asks, but gets no answer that it accepts; `keys` are the keys of the questions."""

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        super().__init__(message)
        self.keys = keys


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """The identity of a server, and what it offers to this client."""

    revision: str
    """The protocol revision that the client uses."""
    name: str
    version: str
    title: str | None
    instructions: str | None
    capabilities: Mapping[str, Any]

    @classmethod
    def of(cls, revision: str, info: Mapping[str, Any], result: Mapping[str, Any]) -> "ServerDescription":
        """Read the implementation of a server and the result of `initialize` or `server/discover`."""
        return cls(
            revision,
            str(info.get("name", "unknown")),
            str(info.get("version", "")),
            _text(info.get("title")),
            _text(result.get("instructions")),
            result["capabilities"] if isinstance(result.get("capabilities"), dict) else {},
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class CallReply:
    """The result of a tool."""

    content: Sequence[Mapping[str, Any]]
    structured: Any
    is_error: bool
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "CallReply":
        """Read the result of `tools/call`."""
        structured, is_error = result.get("structuredContent"), result.get("isError", False)
        return cls(result["content"], structured, is_error, result.get("_meta", {}))

    @property
    def text(self) -> str:
        """The text of all content blocks."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class PromptReply:
    """The result of a prompt."""

    messages: Sequence[Mapping[str, Any]]
    description: str | None
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "PromptReply":
        """Read the result of `prompts/get`."""
        return cls(result["messages"], result.get("description"), result.get("_meta", {}))

    @property
    def text(self) -> str:
        """The text of all messages."""
        blocks = (message["content"] for message in self.messages)
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class ResourceReply:
    """The contents of a resource, and how long they may be cached."""

    contents: Sequence[Mapping[str, Any]]
    cache: CacheHint
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "ResourceReply":
        """Read the result of `resources/read`."""
        cache = CacheHint(result.get("ttlMs", 0) / 1000, result.get("cacheScope", "private"))
        return cls(result["contents"], cache, result.get("_meta", {}))

    @property
    def text(self) -> str:
        """The text of all contents."""
        return "\n".join(content["text"] for content in self.contents if "text" in content)

    @property
    def blobs(self) -> list[bytes]:
        """The binary contents, decoded."""
        return [b64decode(content["blob"]) for content in self.contents if "blob" in content]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a list or a resource."""

    method: str
    """The notification, for example `notifications/tools/list_changed`."""
    uri: str | None = None


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    resource: dict[str, Any] | None = None


class _ToolResult(msgspec.Struct):
    content: list[_Block]
    isError: bool = False


class _PromptMessage(msgspec.Struct):
    role: str
    content: _Block


class _Prompt(msgspec.Struct):
    messages: list[_PromptMessage]
    description: str | None = None


class _ResourceContent(msgspec.Struct):
    uri: str
    text: str | None = None
    blob: str | None = None
    mimeType: str | None = None


class _Resource(msgspec.Struct):
    contents: list[_ResourceContent]
    ttlMs: float = 0
    cacheScope: str = "private"


class _Named(msgspec.Struct):
    name: str
    title: str | None = None
    description: str | None = None
    mimeType: str | None = None


class _Tool(_Named):
    inputSchema: dict[str, Any] = {}
    outputSchema: dict[str, Any] | bool | None = None


class _Argument(_Named):
    required: bool = False


class _PromptEntry(_Named):
    arguments: list[_Argument] | None = None


class _ResourceEntry(_Named, kw_only=True):
    uri: str
    size: int | None = None


class _TemplateEntry(_Named, kw_only=True):
    uriTemplate: str


class _Tools(msgspec.Struct):
    tools: list[_Tool]
    nextCursor: str | None = None


class _Prompts(msgspec.Struct):
    prompts: list[_PromptEntry]
    nextCursor: str | None = None


class _Resources(msgspec.Struct):
    resources: list[_ResourceEntry]
    nextCursor: str | None = None


class _Templates(msgspec.Struct):
    resourceTemplates: list[_TemplateEntry]
    nextCursor: str | None = None


class _Values(msgspec.Struct):
    values: list[str]
    total: int | None = None
    hasMore: bool | None = None


class _Completions(msgspec.Struct):
    completion: _Values


_SHAPES: Final = {
    "tools/call": _ToolResult,
    "prompts/get": _Prompt,
    "resources/read": _Resource,
    "tools/list": _Tools,
    "prompts/list": _Prompts,
    "resources/list": _Resources,
    "resources/templates/list": _Templates,
    "completion/complete": _Completions,
}


def check_result(method: str, result: Mapping[str, Any]) -> None:
    """Check a final result; raises InvalidReply if it does not have the shape that the protocol prescribes."""
    shape = _SHAPES.get(method)
    is_final = result.get("resultType", "complete") == "complete" and "task" not in result
    if shape is None or not is_final:
        return
    problem = f"The result of {method} does not follow the protocol"
    try:
        found = msgspec.convert(result, shape)
        for content in found.contents if isinstance(found, _Resource) else ():
            b64decode(content.blob or "")
    except binascii.Error as error:
        raise InvalidReply(f"{problem}: a blob is not base64: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidReply(f"{problem}: {error}") from None
