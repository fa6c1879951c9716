"""What a server told the client in the same process."""

import inspect
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

import msgspec
from pydantic import BaseModel

from axolotl_core.questions.question import Root
from axolotl_core.resources.resource import CacheHint

if TYPE_CHECKING:
    from axolotl_core.questions.sampling import Sample

ACCEPT: Final[Mapping[str, Any]] = {"action": "accept"}
"""The answer of a user who agrees to open a page."""
DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
"""The answer of a user who says no."""
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}
"""The answer of a user who closes the question without a choice."""

EVERYTHING: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""The capabilities of a client that can be asked whatever there is to ask."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question of the server."""

    key: str
    """The name that the code gave it, else its place: `ask-1`, `sample-1`, `roots-1`."""
    method: str
    """`elicitation/create`, `sampling/createMessage` or `roots/list`."""
    params: Mapping[str, Any]

    @property
    def message(self) -> str:
        """What the user is asked; empty where it is a model that is asked, or nobody."""
        return str(self.params.get("message", ""))


Answer: TypeAlias = Union[Mapping[str, Any], BaseModel, "Sample", str, Sequence[Root]]
"""An answer to any question.

To a form: the model, filled in, or the content as a mapping. To a form or a page: `ACCEPT`, `DECLINE` or `CANCEL`. To
a model: a `Sample`, or its text. To the question for roots: the roots. A mapping may also be the whole result, as the
protocol has it; that of a form or a page is known by its `action`.
"""

Answering: TypeAlias = Callable[[Inquiry], Answer | Awaitable[Answer]]
"""Answers a question, at once or later."""


async def answers_to(result: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Answer the questions of one round; gives what the request is to be sent again with.

    Raises:
        TypeError: if an answer is none.
    """
    responses: dict[str, Any] = {}
    for key, asked in result.get("inputRequests", {}).items():
        inquiry = Inquiry(key, asked["method"], asked.get("params", {}))
        given = answering(inquiry)
        responses[key] = _response(inquiry, await given if inspect.isawaitable(given) else given)
    params: dict[str, Any] = {"inputResponses": responses} if responses else {}
    return {**params, "requestState": result["requestState"]} if "requestState" in result else params


def _response(inquiry: Inquiry, given: Any) -> Mapping[str, Any]:
    """Write an answer in the form of the protocol."""
    if inquiry.method == "elicitation/create":
        written = _filled_in(given)
    elif inquiry.method == "sampling/createMessage":
        written = _sampled(given)
    else:
        written = _listed(given)
    if written is None:
        raise TypeError(f"{type(given).__name__} is no answer to {inquiry.method}, which asks for {inquiry.key!r}")
    return written


def _filled_in(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, BaseModel):
        return {**ACCEPT, "content": given.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if isinstance(given, Mapping):
        return given if "action" in given else {**ACCEPT, "content": given}
    return None


def _sampled(given: Any) -> Mapping[str, Any] | None:
    from axolotl_core.questions.sampling import Sample  # few tools sample

    if isinstance(given, str):
        return {"role": "assistant", "content": {"type": "text", "text": given}, "model": "in-process"}
    if isinstance(given, Sample):
        content = msgspec.to_builtins(given.content, str_keys=True)
        said = {"role": given.role, "content": content, "model": given.model}
        return said if given.stop_reason is None else {**said, "stopReason": given.stop_reason}
    return given if isinstance(given, Mapping) else None


def _listed(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, Sequence) and all(isinstance(one, Root) for one in given):
        return {
            "roots": [{"uri": one.uri} if one.name is None else {"uri": one.uri, "name": one.name} for one in given]
        }
    return given if isinstance(given, Mapping) else None


class RemoteError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class TaskCancelled(Exception):
    """The task that a call became was ended before there was a result."""


class UnansweredQuestion(Exception):
    """The server asks something and gets no answer that it takes; `keys` name the questions."""

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        super().__init__(message)
        self.keys = keys


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a tool answered."""

    content: Sequence[Mapping[str, Any]]
    structured: Any
    is_error: bool
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "CallOutcome":
        """Read the result of `tools/call`."""
        structured, is_error = result.get("structuredContent"), result.get("isError", False)
        return cls(result["content"], structured, is_error, result["_meta"])

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class PromptOutcome:
    """What a prompt made of its arguments."""

    messages: Sequence[Mapping[str, Any]]
    description: str | None
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "PromptOutcome":
        """Read the result of `prompts/get`."""
        return cls(result["messages"], result.get("description"), result["_meta"])

    @property
    def text(self) -> str:
        """All text of the messages, whoever says it."""
        blocks = (message["content"] for message in self.messages)
        return "\n".join(block["text"] for block in blocks if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class ResourceOutcome:
    """What is behind a URI, and how long it may be kept."""

    contents: Sequence[Mapping[str, Any]]
    cache: CacheHint
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "ResourceOutcome":
        """Read the result of `resources/read`."""
        cache = CacheHint(result["ttlMs"] / 1000, result["cacheScope"])
        return cls(result["contents"], cache, result["_meta"])

    @property
    def text(self) -> str:
        """All text of the contents."""
        return "\n".join(content["text"] for content in self.contents if "text" in content)

    @property
    def blobs(self) -> list[bytes]:
        """The contents that are no text, decoded."""
        return [b64decode(content["blob"]) for content in self.contents if "blob" in content]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that changed: a list, or the resource behind a URI."""

    method: str
    """The notification, as `notifications/tools/list_changed`."""
    uri: str | None = None
