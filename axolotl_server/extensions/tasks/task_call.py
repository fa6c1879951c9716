"""The call of a task, in the form in which it is stored until a worker runs it."""

from hashlib import sha256
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from axolotl_core.errors import InternalError
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.protocol.wire import encode
from axolotl_core.task_engine import UnknownCall
from axolotl_server.calls.sealing import RoundState
from axolotl_server.protocol.connection import Connection
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.request import Request

Design: TypeAlias = Literal["requested", "directed"]
"""Who decides that a call becomes a task, the client or the server; its methods are those of the same design."""

_VERSION: Final = b"\x01"
"""To be raised when the content changes: a worker returns a call of another version to the queue."""
_TRACE_HEADERS: Final = (b"traceparent", b"tracestate", b"baggage")


class TaskAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer as an engine stores it."""

    digest: str
    """Identifies the question."""
    result: Raw | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    """Why the client did not ask."""

    def encode(self) -> bytes:
        """Encode the answer."""
        return encode(self)


class TaskCall(msgspec.Struct, frozen=True):
    """A request that runs as a task, without the token that it came with."""

    design: Design
    message: bytes
    revision: str
    principal: Principal | None
    """None if the process that submitted the call also runs it."""
    headers: dict[bytes, bytes] | None
    """The headers about the trace; None on a transport without headers."""
    share: Share | None
    client_address: str | None
    client: bytes | None = None
    capabilities: bytes = b"{}"
    log_level: str | None = None
    answers: dict[str, bytes] = {}
    """The answers that the call got in its request, before it became a task."""
    steps: dict[str, bytes] = {}
    """The results of the steps that it finished there."""
    call_key: str = ""
    """Identifies the call in its steps; empty if the ID of the task does."""
    submitter: str = ""
    """The span that submitted the task, as a `traceparent`."""
    reference: str = ""
    """The ID of the audit record that the call was accepted."""

    @classmethod
    def of(cls, request: Request, design: Design, *, stored: bool, submitter: str, reference: str) -> "TaskCall":
        """Describe a request; `stored` if another process may run it."""
        exchange, connection = request.exchange, request.connection
        known = None if request.era.revision.stateless else connection
        headers = exchange.headers
        if headers is not None:
            headers = {name: bytes(headers[name]) for name in _TRACE_HEADERS if name in headers}
        state = RoundState() if request.rounds is None else request.rounds.state({})
        answers = {key: TaskAnswer(answer.digest, answer.response).encode() for key, answer in state.answers.items()}
        return cls(
            design,
            request.data,
            request.era.revision.name,
            exchange.principal if stored else None,
            headers,
            exchange.share,
            exchange.client_address,
            None if known is None else known.client_data,
            b"{}" if known is None else known.capability_data,
            None if known is None else known.log_level,
            answers,
            dict(state.steps),
            state.call_key,
            submitter,
            reference,
        )

    def encode(self) -> bytes:
        """Encode the call, or raise InternalError if the claims of its principal are not plain JSON."""
        try:
            return _VERSION + msgspec.msgpack.encode(self)
        except TypeError as error:
            raise InternalError(f"The task cannot be stored: {error}; claims must be JSON") from None


_decode: Final = msgspec.msgpack.Decoder(TaskCall).decode


def decode_call(data: bytes) -> TaskCall:
    """Decode a call, or raise UnknownCall if a server of another version has submitted it."""
    if data[:1] != _VERSION:
        raise UnknownCall("the call has another version")
    return _decode(data[1:])


def owner_of(design: Design, principal: Principal, connection: Connection | None) -> bytes:
    """Identify the caller that may see a task; scopes and claims do not count, because tokens are renewed.

    An anonymous caller is identified by its connection: a session, or the process at the other end of a pipe.
    """
    key = connection.key if principal == ANONYMOUS and connection is not None else None
    return sha256(msgspec.msgpack.encode((design, principal.identity, key))).digest()


def share_digest(share: Share | None) -> bytes | None:
    """Identify whom a task counts for."""
    return None if share is None else sha256(msgspec.msgpack.encode(share)).digest()
