"""The messages between the server and a tool process.

The server pickles what it sends. What comes from a process is never unpickled, because its code may have been taken
over: it is data of known types and limited size.
"""

import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, Literal, TypeAlias

import msgspec
from pydantic_core import from_json

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import IFeature, Kind
from axolotl_core.output import WriteOutput, output_writer, read_blocks, read_contents, read_output
from axolotl_core.prompts import PromptMessage, PromptResult
from axolotl_core.protocol.identity import Implementation, Principal, RequestId
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.protocol.wire import encode, json_text

MAX_TEXT_CHARACTERS: Final = 64 * 1024
"""The maximum length of a traceback, an error message or a log message of a process."""
_MESSAGE_BYTES: Final = 1024 * 1024
_COPIES: Final = 4
"""How much larger than the limit an output can be: it may have text and structured content, and both are escaped."""


class RunCall(msgspec.Struct, frozen=True):
    """A call on its way to a process."""

    arguments: Any
    request_id: RequestId
    principal: Principal
    deadline: float | None
    uri: str
    client: Implementation | None
    trace: TraceContext | None
    meta: dict[str, Any]


class Loaded(msgspec.Struct, tag="loaded"):
    """The first message of a process: the traceback, if its tool cannot be loaded."""

    failure: str | None


class Begun(msgspec.Struct, tag="begun"):
    """The code of the call starts."""


class Progress(msgspec.Struct, tag="progress"):
    """The code reported progress."""

    progress: int | float
    total: int | float | None
    message: str | None


class LogMessage(msgspec.Struct, tag="log"):
    """The code logged a JSON value for its caller."""

    level: LogLevel
    data: bytes
    logger: str | None


class UrlCompleted(msgspec.Struct, tag="url_completed"):
    """The user has finished on a page."""

    reference: str


class HangUp(msgspec.Struct, tag="hang_up"):
    """The code asked to close the connection of its caller."""


class Output(msgspec.Struct, tag="output"):
    """The end of a call: the output, as `write_output_of` writes it."""

    data: bytes


class ReportedError(msgspec.Struct, tag="error"):
    """The end of a call: an error for the model, with a JSON object."""

    message: str
    meta: bytes | None


class ProcessFailure(msgspec.Struct, tag="failure"):
    """The end of a call: a traceback for the log."""

    traceback: str


Outcome: TypeAlias = Output | ReportedError | ProcessFailure
ProcessMessage: TypeAlias = Loaded | Begun | Progress | LogMessage | UrlCompleted | HangUp | Outcome

ReadOutput: TypeAlias = Callable[[bytes], Any]
"""Reads an output that a process wrote; raises ValueError or msgspec.MsgspecError if it is something else."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(ProcessMessage).decode


class InvalidMessage(Exception):
    """A process sent something that is not a message, or too much."""


def send_message(pipe: Pipe, message: ProcessMessage) -> None:
    """Send a message to the server."""
    pipe.send_bytes(_encode(message))


def receive_message(pipe: Pipe, max_result_bytes: int) -> ProcessMessage:
    """Wait for a message of a process.

    It raises EOFError or OSError if the process has ended, and InvalidMessage if it sent anything else.
    """
    try:
        data = pipe.recv_bytes(min(sys.maxsize, _COPIES * max_result_bytes + _MESSAGE_BYTES))
    except OSError as error:
        if error.errno is None:  # the pipe works, but the message is too long
            raise InvalidMessage(str(error)) from error
        raise
    try:
        message: ProcessMessage = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidMessage(str(error)) from error
    return message


def write_output_of(feature: Any, kind: Kind) -> WriteOutput:
    """Return the function that writes the outputs of a feature in its process."""
    if kind == "tool":
        return output_writer(feature.output_model, lambda: feature.output_adapter)
    return _CODECS[kind][0]


def read_output_of(feature: IFeature, kind: Kind) -> ReadOutput:
    """Return the function that reads the outputs of a feature in the server, or raise ConfigurationError."""
    if kind == "tool":
        return read_output
    if kind not in _CODECS:
        raise ConfigurationError(f"{kind.title()} {feature.name} cannot run in a process")
    return _CODECS[kind][1]


class _Prompt(msgspec.Struct, array_like=True):
    roles: tuple[Literal["user", "assistant"], ...]
    content: bytes
    description: str | None
    meta: bytes | None


_read_prompt_parts: Final = msgspec.msgpack.Decoder(_Prompt).decode


def _write_prompt(result: PromptResult) -> bytes:
    roles = tuple(message.role for message in result.messages)
    content = encode([message.content for message in result.messages])
    return _encode(_Prompt(roles, content, result.description, None if result.meta is None else encode(result.meta)))


def _read_prompt(data: bytes) -> PromptResult:
    parts = _read_prompt_parts(data)
    messages = tuple(map(PromptMessage, parts.roles, read_blocks(parts.content)))
    return PromptResult(messages, parts.description, None if parts.meta is None else from_json(parts.meta))


_CODECS: Final[Mapping[str, tuple[WriteOutput, ReadOutput]]] = {
    "prompt": (_write_prompt, _read_prompt),
    "resource": (lambda contents: encode(list(contents)), read_contents),
    "extension": (json_text, from_json),
}
