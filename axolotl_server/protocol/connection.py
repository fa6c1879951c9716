"""The connections of clients, the exchange of a single message, and the observers of both."""

import asyncio
import itertools
import secrets
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest, ProtocolError
from axolotl_core.layers import Call, ITask
from axolotl_core.protocol.identity import Implementation, Principal, RequestId
from axolotl_server.protocol.fair_share import Share

if TYPE_CHECKING:
    from axolotl_core.features.spec import FeatureSpec
    from axolotl_server.layers.call_ending import Ending
    from axolotl_server.protocol.eras.era import IEra
    from axolotl_server.protocol.request import Request


_TASK_NAME: Final = "axolotl message"
"""Without a name, each task would make one of its number."""


def _start_eagerly(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
    return asyncio.Task(work, loop=loop, name=_TASK_NAME, eager_start=True)  # type: ignore[call-arg]


def _start_soon(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
    return asyncio.Task(work, loop=loop, name=_TASK_NAME)


start_task: Final = _start_eagerly if sys.version_info >= (3, 12) else _start_soon
"""Starts the task of a message: at once, where Python can, instead of in the next iteration of the event loop."""

MAX_RESOURCES: Final = 1000
"""How many resources a client may watch."""
MAX_CLIENT_BYTES: Final = 16 * 1024
"""How many bytes a client may send about itself: the whole handshake, or client and capabilities in `_meta`."""


Stop: TypeAlias = Callable[[CancelReason], object]
"""Stops something, unless it has ended."""


class IRunning(Protocol):
    """A request that its client can cancel, and whose questions it can answer."""

    def stop(self, reason: CancelReason) -> None:
        """Stop it, unless it has ended."""

    @property
    def principal(self) -> Principal:
        """Who sent it."""

    @property
    def spec(self) -> "FeatureSpec | None":
        """The feature that it uses, None if it is not about one."""


class WaitingRequest:
    """A request that waits for something other than code of its own: a decision, a change, the end of a task."""

    def __init__(self, exchange: "IExchange", spec: "FeatureSpec | None" = None) -> None:
        self.principal = exchange.principal
        self.spec = spec
        self.stopped: asyncio.Future[CancelReason] = exchange.loop.create_future()

    @property
    def reason(self) -> CancelReason | None:
        """Why it no longer waits; None if it was not stopped."""
        return self.stopped.result() if self.stopped.done() else None

    def stop(self, reason: CancelReason) -> None:
        """Let it wait no longer."""
        if not self.stopped.done():
            self.stopped.set_result(reason)


class Forwarded(NamedTuple):
    """A message of a client for another process."""

    message: bytes
    sender: bytes
    """Its principal, encoded; empty where access is not restricted."""


class Audience(NamedTuple):
    """Who may hear a message of a task that belongs to no request, where access is restricted."""

    tool: str
    scopes: frozenset[str]
    """The scopes of the caller of the task."""
    roles: frozenset[str]


MayHear: TypeAlias = Callable[[Audience], bool]
"""Tells whether the client that listens may hear a message."""


class IOpenStream(Protocol):
    """A stream of a connection on which its client listens for messages that belong to no request."""

    @property
    def connected(self) -> bool:
        """Whether the client is connected."""

    def put(self, message: bytes) -> None:
        """Send a message."""


class Connection:
    """The state of a client that completed the handshake: on stdio, over SSE, or in a session."""

    __slots__ = (
        "__weakref__",
        "_key",
        "calls",
        "capability_data",
        "client_data",
        "era",
        "forward",
        "initialized",
        "input_closed",
        "log_level",
        "next_id",
        "opened_at",
        "pending_answers",
        "send",
        "subscriptions",
        "waiting_calls",
    )

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self.send = send
        """Sends a message that is not a reply."""
        self.opened_at: float | None = None
        """When it was opened, by `time.perf_counter`; None if it is not open."""
        self.era: IEra | None = None
        """The era chosen in the handshake, None before it."""
        self.initialized = False
        self.client_data: bytes | None = None
        """The client's description of itself, None before the handshake. JSON needs less memory than objects."""
        self.capability_data: bytes = b"{}"
        """The capabilities that the client declared in the handshake, as JSON."""
        self.log_level: str | None = None
        """The lowest level of the log messages that the client wants, None if it did not set one."""
        self.calls: dict[RequestId, IRunning] = {}
        self.pending_answers: dict[RequestId, asyncio.Future[Any]] = {}
        """The questions to this client that are not answered yet, by the ID of the server's request."""
        self.waiting_calls: dict[RequestId, IRunning] = {}
        """The calls that wait for those answers."""
        self.input_closed = False
        """Whether the client sends nothing more, and so cannot answer."""
        self.next_id = itertools.count(1).__next__
        """Returns the ID of the server's next request."""
        self.subscriptions: set[str] = set()
        """The URIs of the resources that the client subscribed to."""
        self.forward: Callable[[Forwarded], object] | None = None
        """Forwards a message about a call that does not run in this process; None if there are no other processes."""
        self._key: bytes | None = None

    @property
    def key(self) -> bytes:
        """Identifies the connection, in all processes that share it."""
        if self._key is None:
            self._key = secrets.token_bytes(16)
        return self._key

    @property
    def listening_stream(self) -> IOpenStream | None:
        """The stream that an HTTP client listens on in this process, None if it does not or needs none."""
        return None

    def is_heard_by(self, audience: Audience | None) -> bool:
        """Tell whether the client that listens on the connection may hear a message; None is for everybody."""
        return True

    def send_to(self, audience: Audience | None, message: bytes) -> None:
        """Send a message that is not a reply, unless the client that listens may not hear it."""
        if self.is_heard_by(audience):
            self.send(message)

    @property
    def reaches_client(self) -> bool:
        """Whether `send` has a stream to send on, in this process or in another one."""
        return True

    @property
    def client(self) -> Implementation | None:
        """The client, None before the handshake."""
        return None if self.client_data is None else msgspec.json.decode(self.client_data, type=Implementation)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared in the handshake."""
        return msgspec.json.decode(self.capability_data, type=dict[str, Any])

    def register(self, request_id: RequestId, running: IRunning) -> None:
        """Let the client cancel a request by its ID, or raise InvalidRequest if a request with that ID is running."""
        if request_id in self.calls:
            raise InvalidRequest(f"Invalid request: a request with the id {request_id!r} is still running")
        self.calls[request_id] = running

    @contextmanager
    def running(self, request_id: RequestId, running: IRunning) -> Iterator[None]:
        """Register a request while the block runs."""
        self.register(request_id, running)
        try:
            yield
        finally:
            self.unregister(request_id, running)

    def unregister(self, request_id: RequestId, running: IRunning) -> None:
        """Let the client use the ID of a request again, unless another request has it already."""
        if self.calls.get(request_id) is running:
            del self.calls[request_id]

    def close_input(self) -> None:
        """Stop every call that waits for an answer, now and later: the client has closed its end."""
        self.input_closed = True
        for number, call in tuple(self.waiting_calls.items()):
            if number in self.pending_answers and not self.pending_answers[number].done():
                call.stop(CancelReason.SHUTDOWN)


class IExchange(Protocol):
    """The path of one message in and its reply out."""

    loop: asyncio.AbstractEventLoop
    principal: Principal
    status: int
    """The HTTP status of the reply; the handler sets it for errors."""
    subject: "FeatureSpec | None" = None
    """The feature whose permission the message needs, as soon as that is known; only set where access is restricted."""

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The HTTP headers; None on a transport that has none."""

    @property
    def share(self) -> Share | None:
        """Whom the request counts for in limits per principal; None if its caller may use everything."""
        return None

    @property
    def client_address(self) -> str | None:
        """The address of the client; None on a transport that has none."""
        return None

    def connection(self) -> Connection:
        """Return the connection that the message belongs to, or raise a ProtocolError if there is none."""

    def open_connection(self) -> Connection:
        """Return the connection for a handshake."""

    def notify(self, message: bytes) -> bool:
        """Send a message ahead of the reply, or return False if the client accepts none."""

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """Reply now, although `running`, which handles the message, has not ended; its own reply is dropped."""

    def watch(self, stop: Stop | None) -> None:
        """Notice that a request takes long: keep its client waiting, if the transport has to.

        Call `stop` when the client disconnects, if it is not None and the transport would not do that otherwise.
        """
        return

    def hang_up(self) -> None:
        """Close the connection if the client can come back for the reply."""
        return

    def end_silently(self) -> bool:
        """Prepare to end without a reply, because the request was cancelled; return False if the client needs one."""
        return self.headers is None

    def challenge(self, scopes: Iterable[str]) -> ProtocolError | None:
        """Return the error that asks a client to come back with these scopes, None if the transport has none."""
        return None

    def retry_after(self, seconds: int) -> None:
        """Add to the reply when to try again, if the transport has a header for that."""
        return


class IObserver:
    """Notices requests, calls and connections; every method does nothing unless it is overridden."""

    def request_begun(self, request: "Request", method: str | None) -> None:
        """Notice a request before its method runs; the method is None if the server has no such method."""

    def request_answered(self, request: "Request", result: bytes | None, error: BaseException | None) -> None:
        """Notice the result of a request, or the error; neither means that the client no longer wants an answer."""

    def call_begun(self, call: Call) -> None:
        """Notice a call before its layers run; the call of a task begins after its request was answered."""

    def call_ended(self, call: Call, ending: "Ending") -> None:
        """Notice how a call ended; an abandoned one ends here although its code still runs."""

    def connection_closed(self, connection: Connection) -> None:
        """Notice the end of a connection."""
