"""Every error of the framework.

    AxolotlError
    ├─ ConfigurationError                  at start only; exit code 2, never on the wire
    ├─ InvalidToken                        a bearer token that is not accepted; 401 over HTTP
    ├─ ProtocolError                       a JSON-RPC error
    │  ├─ ParseError · InvalidRequest · MethodNotFound · InternalError
    │  ├─ InvalidParams ─ InvalidEnvelope
    │  ├─ ToolNotFound ─ InvalidToolName
    │  ├─ PromptNotFound · ResourceNotFound · RequestCancelled
    │  └─ HeaderMismatch · MissingCapability · UnsupportedVersion
    └─ ToolError                           an `isError` result, to be read by the model
       ├─ InvalidArguments · Declined · ToolTimeout · ToolCancelled · ToolFailed · ResultTooLarge
       └─ Refused ─ Forbidden · QuotaExceeded · Overloaded

    InputRequired                          no error: ends a run until its caller has answered a question

The text of a ProtocolError and of a ToolError is public: it is sent to the client as it is. Any other exception is
logged with a correlation id, and the client is told that id and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from axolotl_core.protocol import codes


class AxolotlError(Exception):
    """The root of the tree."""


class ConfigurationError(AxolotlError):
    """The server cannot start as it is set up; the message says what to change."""

    def __init__(self, *findings: str) -> None:
        super().__init__("\n".join(findings))
        self.findings: Sequence[str] = findings


class InvalidToken(AxolotlError):
    """A token proves nothing here; the reason is told to its sender, so it must hold nothing of the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProtocolError(AxolotlError):
    """A request that is answered by a JSON-RPC error; the message is public."""

    code: ClassVar[int] = codes.INTERNAL_ERROR
    status: int | None = None
    """The HTTP status that goes with it where the transport, not the revision, decides."""

    def __init__(self, message: str, *, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(ProtocolError):
    """The message is not JSON, not UTF-8 or nested too deeply."""

    code = codes.PARSE_ERROR


class InvalidRequest(ProtocolError):
    """The message is JSON but no JSON-RPC message that may be sent here."""

    code = codes.INVALID_REQUEST


class MethodNotFound(ProtocolError):
    """The revision or this server does not know the method."""

    code = codes.METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """The parameters of a known method are wrong."""

    code = codes.INVALID_PARAMS


class InvalidEnvelope(InvalidParams):
    """The per-request `_meta` that a stateless revision demands is missing or wrong."""


class InternalError(ProtocolError):
    """The server failed; the message carries a correlation id and nothing else."""

    code = codes.INTERNAL_ERROR


class ToolNotFound(ProtocolError):
    """No tool has that name; the code depends on the revision."""

    code = codes.METHOD_NOT_FOUND

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        super().__init__(f"Tool not found: {name}{hint}")


class InvalidToolName(ToolNotFound):
    """No tool can have that name, as the server's rule for names says; a wrong parameter in every revision."""

    code = codes.INVALID_PARAMS

    def __init__(self, fault: str) -> None:
        super(ToolNotFound, self).__init__(fault)


class PromptNotFound(ProtocolError):
    """No prompt has that name."""

    code = codes.INVALID_PARAMS

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        super().__init__(f"Prompt not found: {name}{hint}")


class ResourceNotFound(ProtocolError):
    """Nothing is behind a URI; the code depends on the revision."""

    code = codes.RESOURCE_NOT_FOUND

    def __init__(self, uri: str) -> None:
        super().__init__(f"Resource not found: {uri}", data={"uri": uri})


class RequestCancelled(ProtocolError):
    """The client cancelled the request, and its transport demands a response nevertheless."""

    code = codes.REQUEST_CANCELLED

    def __init__(self) -> None:
        super().__init__("Request cancelled")


class HeaderMismatch(ProtocolError):
    """A mirrored HTTP header is missing or differs from the body."""

    code = codes.HEADER_MISMATCH


class MissingCapability(ProtocolError):
    """The request cannot be finished without something that the client did not declare."""

    code = codes.MISSING_CAPABILITY

    def __init__(self, message: str, required: Mapping[str, Any]) -> None:
        super().__init__(message, data={"requiredCapabilities": required})


class UnsupportedVersion(ProtocolError):
    """The request names a protocol revision that is not served."""

    code = codes.UNSUPPORTED_VERSION

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__("Unsupported protocol version", data={"supported": supported, "requested": requested})


class ToolError(AxolotlError):
    """What a tool raises to tell the model what went wrong; the message is public."""

    def __init__(self, message: str, *, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.meta = meta


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's input schema."""


_NO_ANSWER = {
    "decline": "The user declined to answer",
    "cancel": "The user cancelled the question",
    "refuse": "The client refused to ask the question",
}


class Declined(ToolError):
    """A question stays unanswered: the user declined or cancelled it, or the client refused to ask."""

    def __init__(self, action: Literal["decline", "cancel", "refuse"], message: str | None = None) -> None:
        super().__init__(_NO_ANSWER[action] if message is None else message)
        self.action: Literal["decline", "cancel", "refuse"] = action


class ToolTimeout(ToolError):
    """The tool did not finish before its deadline."""


class ToolCancelled(ToolError):
    """The call was cancelled before the tool finished."""


class ToolFailed(ToolError):
    """The tool failed in a way that is not for the caller to see; the text names a correlation id."""


class ResultTooLarge(ToolError):
    """The tool gave more than a result may hold; nothing of it is sent."""

    def __init__(self, size: int, max_bytes: int) -> None:
        super().__init__(
            f"The result is too large: it has {size} bytes and may have {max_bytes}; ask for less",
            meta={"reason": "result_too_large", "bytes": size, "maxBytes": max_bytes},
        )


class Refused(ToolError):
    """A policy refused the call before the tool ran."""


class Forbidden(Refused):
    """The principal may not call this tool."""


class QuotaExceeded(Refused):
    """The principal used up what it may use for now."""


class Overloaded(Refused):
    """Too many calls are running; the same call may succeed later."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message, meta={"reason": "overloaded", "retryAfterMs": round(retry_after_seconds * 1000)})
        self.retry_after_seconds = retry_after_seconds


class InputRequired(BaseException):
    """Leaves the code of a feature whose question has no answer yet.

    Like a cancellation it is no `Exception`: code that handles errors does not see it, `finally` does. The code runs
    again from its start when the answer is there.
    """
