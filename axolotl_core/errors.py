"""All error classes of the framework.

    AxolotlError
    ├─ ConfigurationError ─ DefinitionError  only at startup; exit code 2, never sent to a client
    ├─ OutputError                         an output that does not fit its type; logged, never sent to a client
    ├─ InvalidToken                        a bearer token that was not accepted; status 401 over HTTP
    ├─ ProtocolError                       a JSON-RPC error
    │  ├─ ParseError · InvalidRequest · MethodNotFound · InternalError
    │  ├─ InvalidParams ─ InvalidEnvelope
    │  ├─ ToolNotFound ─ InvalidToolName
    │  ├─ PromptNotFound · ResourceNotFound · RequestCancelled
    │  └─ HeaderMismatch · MissingCapability · UnsupportedVersion
    └─ ToolError                           an `isError` result, which the model reads
       ├─ InvalidArguments · Declined · ToolTimeout · ToolCancelled · ToolFailed · ResultTooLarge
       └─ Refused ─ Forbidden · QuotaExceeded · Overloaded

    InputRequired                          not an error: ends a run until the caller has answered a question
    └─ Detached                            not an error: ends a run that continues as a task

The text of a ProtocolError or ToolError is public: it is sent to the client unchanged. Any other exception is logged
with a correlation ID, and the client receives only that ID.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from axolotl_core.protocol import codes
from axolotl_core.protocol.client_text import shorten
from axolotl_core.protocol.result_keys import own_meta


class AxolotlError(Exception):
    """Base class of all errors."""


class ConfigurationError(AxolotlError):
    """The server cannot start with this configuration. The message says what to change."""

    def __init__(self, *findings: str) -> None:
        super().__init__("\n".join(findings))
        self.findings: Sequence[str] = findings

    @classmethod
    def missing_extra(cls, what: str, extra: str, otherwise: str | None = None) -> Self:
        """Say that something needs an optional requirement, how to install it, and what to do otherwise."""
        from importlib.metadata import requires

        parts = (requirement.partition(";") for requirement in requires("axolotl-mcp") or ())
        needed = (package.strip() for package, _, marker in parts if marker.split() == ["extra", "==", f"'{extra}'"])
        packages = " ".join(f"'{package}'" for package in needed)  # from wherever Axolotl itself was installed
        found = f"{what} needs the extra {extra}: pip install {packages}"
        return cls(found if otherwise is None else f"{found}, {otherwise}")


class DefinitionError(ConfigurationError, TypeError):
    """A class cannot be a feature as it is written. The message says where it is and what to write."""


class OutputError(AxolotlError):
    """The output of a feature does not fit its declared type, or is not JSON. The message says what to change."""


class InvalidToken(AxolotlError):
    """A token was not accepted. The sender reads the reason, so it must not contain any part of the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ProtocolError(AxolotlError):
    """A request is answered with a JSON-RPC error. The message is public."""

    code: ClassVar[int] = codes.INTERNAL_ERROR
    status: int | None = None
    """The HTTP status, if the transport determines it and not the revision."""

    def __init__(self, message: str, *, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(ProtocolError):
    """The message is not JSON, not UTF-8 or nested too deeply."""

    code = codes.PARSE_ERROR


class InvalidRequest(ProtocolError):
    """The message is JSON, but not a JSON-RPC message that is allowed here."""

    code = codes.INVALID_REQUEST


class MethodNotFound(ProtocolError):
    """The revision or this server does not have the method."""

    code = codes.METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """The parameters of a known method are invalid."""

    code = codes.INVALID_PARAMS


class InvalidEnvelope(InvalidParams):
    """The `_meta` that stateless revisions require in each request is missing or invalid."""


class InternalError(ProtocolError):
    """The server failed. The message contains only a correlation ID."""

    code = codes.INTERNAL_ERROR


class ToolNotFound(ProtocolError):
    """No tool has this name. The error code depends on the revision."""

    code = codes.METHOD_NOT_FOUND

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        super().__init__(f"Tool not found: {shorten(name)}{hint}")


class InvalidToolName(ToolNotFound):
    """The name breaks the server's rule for tool names: invalid parameters in every revision."""

    code = codes.INVALID_PARAMS

    def __init__(self, fault: str) -> None:
        super(ToolNotFound, self).__init__(fault)


class PromptNotFound(ProtocolError):
    """No prompt has this name."""

    code = codes.INVALID_PARAMS

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
        super().__init__(f"Prompt not found: {shorten(name)}{hint}")


class ResourceNotFound(ProtocolError):
    """No resource has this URI. The error code depends on the revision."""

    code = codes.RESOURCE_NOT_FOUND

    def __init__(self, uri: str) -> None:
        shown = shorten(uri)
        super().__init__(f"Resource not found: {shown}", data={"uri": shown})


class RequestCancelled(ProtocolError):
    """The client cancelled the request, but its transport still requires a response."""

    code = codes.REQUEST_CANCELLED

    def __init__(self) -> None:
        super().__init__("Request cancelled")


class HeaderMismatch(ProtocolError):
    """A mirrored HTTP header is missing or differs from the body."""

    code = codes.HEADER_MISMATCH


class MissingCapability(ProtocolError):
    """The request needs a capability that the client did not declare."""

    code = codes.MISSING_CAPABILITY

    def __init__(self, message: str, required: Mapping[str, Any]) -> None:
        super().__init__(message, data={"requiredCapabilities": required})


class UnsupportedVersion(ProtocolError):
    """The request names a protocol revision that is not served."""

    code = codes.UNSUPPORTED_VERSION

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__("Unsupported protocol version", data={"supported": supported, "requested": shorten(requested)})


class ToolError(AxolotlError):
    """Raised by a tool to report a problem to the model. The message is public."""

    def __init__(self, message: str, *, meta: Mapping[str, Any] | None = None) -> None:
        if not isinstance(message, str):
            kind, given = type(self).__name__, type(message).__name__
            raise TypeError(f"{kind} takes a text for the model, not {given}: write {kind}(text, meta={{…}}) for data")
        super().__init__(message)
        self.message = message
        self.meta = meta


class InvalidArguments(ToolError):
    """The arguments do not match the tool's input schema."""


_NO_ANSWER = {
    "decline": "The user declined to answer",
    "cancel": "The user cancelled the question",
    "refuse": "The client refused to ask the question",
}


class Declined(ToolError):
    """A question was not answered: the user declined or cancelled it, or the client refused to ask."""

    def __init__(self, action: Literal["decline", "cancel", "refuse"], message: str | None = None) -> None:
        super().__init__(_NO_ANSWER[action] if message is None else message)
        self.action: Literal["decline", "cancel", "refuse"] = action


class ToolTimeout(ToolError):
    """The tool did not finish before its deadline."""


class ToolCancelled(ToolError):
    """The call was cancelled before the tool finished."""


class ToolFailed(ToolError):
    """The tool failed, and the cause is hidden from the caller. The text contains a correlation ID."""


class ResultTooLarge(ToolError):
    """The result exceeds the size limit. Nothing of it is sent."""

    def __init__(self, size: int | None, max_bytes: int) -> None:
        """Describe a result by its size, or without it if the result was not even encoded."""
        found = "" if size is None else f"{size} bytes, but "
        known = {} if size is None else {"bytes": size}
        super().__init__(
            f"The result is too large: {found}at most {max_bytes} bytes are allowed; ask for less",
            meta=own_meta(reason="result_too_large", **known, maxBytes=max_bytes),
        )


class Refused(ToolError):
    """A policy refused the call before the tool ran."""


class Forbidden(Refused):
    """The principal may not call this tool."""


class QuotaExceeded(Refused):
    """The principal has used up its quota for now."""


class Overloaded(Refused):
    """Too many calls are running. The same call may succeed later."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message, meta=own_meta(reason="overloaded", retryAfterMs=round(retry_after_seconds * 1000)))
        self.retry_after_seconds = retry_after_seconds


class InputRequired(BaseException):
    """Ends the run of a feature whose question has not been answered yet.

    Like a cancellation, it is not an `Exception`: error handlers do not catch it, but `finally` blocks run. The feature
    runs again from the start when the answer has arrived.
    """


class Detached(InputRequired):
    """Ends the part of a call that runs in its request; a task runs the feature again from the start."""
