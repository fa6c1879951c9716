"""What a server told the client in the same process."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axolotl_core.resource import CacheHint

__all__ = [
    "CallOutcome",
    "Change",
    "PromptOutcome",
    "RemoteError",
    "ResourceOutcome",
    "TaskCancelled",
    "UnansweredQuestion",
]


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
