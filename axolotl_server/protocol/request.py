"""A message that expects a response; the code that runs for it sees it as the caller."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.calls.context import Context
from axolotl_core.calls.steps import KeptStep
from axolotl_core.errors import Detached, InvalidParams, ToolCancelled
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.messages import (
    CLIENT_CAPABILITIES_KEY,
    LEVELS,
    Head,
    LogLevel,
    TraceContext,
    is_at_least,
    read_meta,
    read_trace,
)
from axolotl_core.protocol.wire import log_text, notification
from axolotl_core.questions.question import Question
from axolotl_server.execution.threads import run_in_loop
from axolotl_server.protocol.connection import Connection, IExchange
from axolotl_server.protocol.flow_control import TokenBucket

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool
    from axolotl_server.access.authorization import GuardVerdict
    from axolotl_server.calls.asking import IAsking, StepsInMemory
    from axolotl_server.calls.feature_method import RequestTarget
    from axolotl_server.calls.rounds import Rounds
    from axolotl_server.protocol.eras.era import IEra

LOG_MESSAGES_PER_SECOND: Final = 100.0
"""How many log messages a call may send to its client. More are dropped."""
PROGRESS_PER_SECOND: Final = 20.0
"""How many progress notifications a call may send. More are held back, and the latest is sent."""
_LOG_LEVEL: Final = "info"
"""The level of log messages for clients that have not set one."""

AnswerT = TypeVar("AnswerT")


class Request(msgspec.Struct, eq=False):
    """A decoded message with everything that its method needs."""

    head: Head
    data: bytes
    era: "IEra"
    exchange: IExchange
    connection: Connection | None
    target: "RequestTarget | None" = None
    """The feature that the request names, if it was looked up before the method runs."""
    verdict: "GuardVerdict | None" = None
    """The decision on that feature, if the guard made one."""
    finished: bool = False
    is_error: bool = False
    """Whether the result says that the tool failed; set when the result is encoded."""
    asking: "IAsking | None" = None
    """How to ask the caller, if not in the way of the revision."""
    rounds: "Rounds | None" = None
    """The questions and answers so far, if the revision asks in rounds."""
    detachable: bool = False
    """Whether the code may continue as a task."""
    steps: "StepsInMemory | None" = None
    """The steps so far, if their results stay in memory."""
    questions: dict[int, asyncio.Future[Any]] | None = None
    """The questions to the client on behalf of this request, by the ID of the server's request."""
    held_progress: dict[str, object] | None = None
    """The latest progress that was held back by the rate limit."""
    _progress: float | None = None
    _progress_tokens: TokenBucket | None = None
    _log_tokens: TokenBucket | None = None

    @property
    def client(self) -> Implementation | None:
        """The identity of the client, from the handshake or from this request."""
        if self.connection is not None and not self.era.revision.stateless:
            return self.connection.client
        meta = self.head.params.meta
        if meta is UNSET or meta.client_info is UNSET:
            return None
        try:
            return msgspec.json.decode(meta.client_info, type=Implementation)
        except msgspec.ValidationError:
            return None

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities of the client, from the handshake or from this request."""
        if self.connection is not None and not self.era.revision.stateless:
            return self.connection.capabilities
        meta = self.head.params.meta
        if meta is UNSET or meta.capabilities is UNSET:
            return {}
        try:
            return {name: msgspec.json.decode(value) for name, value in meta.capabilities.items()}
        except msgspec.DecodeError as error:
            raise InvalidParams(f"Invalid params: {CLIENT_CAPABILITIES_KEY} has an invalid value: {error}") from None

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the request belongs to, from its `_meta` or its headers."""
        meta = _read_trace_meta(self.data).params.meta
        trace = read_trace(meta.traceparent, meta.tracestate, meta.baggage)
        headers = self.exchange.headers
        if trace is not None or headers is None:
            return trace
        names = (b"traceparent", b"tracestate", b"baggage")
        return read_trace(*(headers.get(name, b"").decode("latin-1") for name in names))

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, without the keys of the protocol."""
        return read_meta(self.data)

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Notify a caller that sent a progress token; the protocol requires that the values grow."""
        meta = self.head.params.meta
        if meta is UNSET or meta.progress_token is UNSET or self.finished:
            return
        if not isfinite(progress) or (self._progress is not None and progress <= self._progress):
            return
        self._progress = progress
        params: dict[str, object] = {"progressToken": meta.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self.era.revision.progress_messages:
            params["message"] = message
        self._on_loop(partial(self._send_progress, params))

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Notify a caller that wants messages of this level."""
        if level not in LEVELS:
            raise ValueError(f"There is no log level {level!r}; available: {', '.join(LEVELS)}")
        wanted = self._wanted_level
        if wanted is None or self.finished or not is_at_least(level, wanted):
            return
        if self._log_tokens is None:
            self._log_tokens = TokenBucket(LOG_MESSAGES_PER_SECOND)
        if self._log_tokens.take():
            params: dict[str, object] = {"level": level, "data": Raw(log_text(data))}
            if logger is not None:
                params["logger"] = logger
            self._notify(notification("notifications/message", params))

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Tell whether the client declared a capability."""
        from axolotl_server.calls.asking import satisfied  # few tools ask

        return satisfied(capability, self.capabilities, self.era.revision)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Return the client's settings of an extension, None if it did not declare the extension."""
        extensions = self.capabilities.get("extensions")
        settings = extensions.get(identifier) if isinstance(extensions, dict) else None
        return settings if isinstance(settings, dict) else None

    async def ask(
        self, context: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask in the way of the revision; the code may run in any thread."""
        self._raise_if_ended(context)
        return await self._run_in_loop(self._ask_in_loop(context, question, read, key))

    async def recall(self, context: Context, key: str) -> KeptStep:
        """Return what earlier runs know about a step; the code may run in any thread."""
        return await self._run_in_loop((self.asking or self.era.asking).recall(self, context, key))

    async def keep(self, context: Context, key: str, value: bytes) -> None:
        """Store the result of a step; the code may run in any thread."""
        await self._run_in_loop((self.asking or self.era.asking).keep(self, context, key, value))

    async def detach(self, context: Context) -> None:
        """End the code here if it continues as a task, which knows all answers and steps so far."""
        if self.detachable:
            await self.recall(context, "")  # reads what the request brings
            raise Detached

    def url_completed(self, reference: str) -> None:
        """Notify the client that the user has finished on a page, if the revision has that notification."""
        if self.era.revision.elicitation_ids and not self.finished:
            self._notify(notification("notifications/elicitation/complete", {"elicitationId": reference}))

    def hang_up(self) -> None:
        """Close the connection of the caller if it can come back for the reply."""
        if not self.finished:
            self._on_loop(self.exchange.hang_up)

    async def visible_tools(self) -> "tuple[ITool[Any, Any], ...]":
        """List the tools that the principal may use; the code may run in any thread."""
        return await self._run_in_loop(self.era.visible_tools(self.exchange.principal))

    @property
    def _wanted_level(self) -> str | None:
        """The lowest level of the log messages that the caller wants; None if it wants none."""
        if self.connection is not None and not self.era.revision.stateless:
            return self.connection.log_level or _LOG_LEVEL
        meta = self.head.params.meta
        return None if meta is UNSET or meta.log_level is UNSET else meta.log_level

    def _send_progress(self, params: dict[str, object]) -> None:
        """Send progress, or hold it back if there is too much of it; only the latest is kept."""
        if self.held_progress is not None:  # a timer sends it
            self.held_progress = params
            return
        if self._progress_tokens is None:
            self._progress_tokens = TokenBucket(PROGRESS_PER_SECOND)
        if self._progress_tokens.take():
            self.exchange.notify(notification("notifications/progress", params))
            return
        self._progress_tokens.borrow()
        self.held_progress = params
        self.exchange.loop.call_later(1 / PROGRESS_PER_SECOND, self.send_held_progress)

    def send_held_progress(self) -> None:
        """Send the progress that was held back."""
        if self.held_progress is not None and not self.finished:
            self.exchange.notify(notification("notifications/progress", self.held_progress))
            self.held_progress = None

    def _notify(self, message: bytes) -> None:
        self._on_loop(partial(self.exchange.notify, message))

    def _on_loop(self, act: Callable[[], object]) -> None:
        """Act in the thread of the loop; the tool may run in another one."""
        if asyncio._get_running_loop() is self.exchange.loop:
            act()
        else:
            self.exchange.loop.call_soon_threadsafe(self._unless_finished, act)

    async def _run_in_loop(self, work: Coroutine[Any, Any, AnswerT]) -> AnswerT:
        if asyncio.get_running_loop() is self.exchange.loop:
            return await work
        return await run_in_loop(self.exchange.loop, work)

    async def _ask_in_loop(
        self, context: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        # In the loop, nothing can end the call between the check and the question.
        self._raise_if_ended(context)
        return await (self.asking or self.era.asking).ask(self, context, question, read, key)

    def _raise_if_ended(self, context: Context) -> None:
        if self.finished or context.cancelled:
            raise ToolCancelled("The call was stopped: its caller cannot be asked anymore")

    def _unless_finished(self, act: Callable[[], object]) -> None:
        if not self.finished:
            act()


class _TraceMeta(msgspec.Struct):
    traceparent: Any = None
    tracestate: Any = None
    baggage: Any = None


class _TraceParams(msgspec.Struct):
    meta: _TraceMeta = msgspec.field(default_factory=_TraceMeta, name="_meta")


class _TraceMessage(msgspec.Struct):
    params: _TraceParams = msgspec.field(default_factory=_TraceParams)


_read_trace_meta = msgspec.json.Decoder(_TraceMessage).decode
