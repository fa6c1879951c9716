"""A run of a tool that any number of calls wait for."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.context import ToolContext
from axolotl_core.layers import ToolCall
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import Question

AnswerT = TypeVar("AnswerT")


class SharedCall(ToolCall, eq=False, kw_only=True):
    """The call of a run that others may join: its cancellation and its deadline are those of the run."""

    first: ToolCall
    """The call that the run was begun for."""


class SharedCaller:
    """All that wait for a run: each of them hears of progress and log messages, and one of them is asked.

    That one is who has waited longest. Its clock stands still while it is asked, as if the run were its own.
    """

    def __init__(self, first: ToolCall, asked_something: Callable[[], None]) -> None:
        self.waiting: dict[ToolCall, None] = {}
        self.asked: ToolCall | None = None
        """Whom the latest question went to."""
        self._first = first
        self._asked_something = asked_something
        self._open: list[ToolCall] = []

    @property
    def client(self) -> Implementation | None:
        """What the client that began says it is."""
        return self._first.client

    @property
    def trace(self) -> TraceContext | None:
        """The trace that the run began in."""
        return self._first.trace

    def is_asked(self, call: ToolCall) -> bool:
        """Tell whether a caller was asked something and has not answered yet."""
        return call in self._open

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell everyone who asked for it."""
        for call in tuple(self.waiting):
            call.caller.report_progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Tell everyone who wants messages of this level."""
        for call in tuple(self.waiting):
            call.caller.log(level, data, logger)

    def declares(self, capability: Mapping[str, Any]) -> bool:
        """Tell whether the one who would be asked can be."""
        return self._speaker.caller.declares(capability)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """Give the settings that the one who would be asked has of an extension."""
        return self._speaker.caller.extension(identifier)

    async def ask(
        self, context: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask who has waited longest."""
        speaker = self.asked = self._speaker
        self._open.append(speaker)
        try:
            return await speaker.caller.ask(speaker, question, read, key)
        finally:
            self._open.remove(speaker)
            self._asked_something()

    def url_completed(self, reference: str) -> None:
        """Tell the one who was asked."""
        self._speaker.caller.url_completed(reference)

    def hang_up(self) -> None:
        """Free the connections of everyone who can come back."""
        for call in tuple(self.waiting):
            call.caller.hang_up()

    @property
    def _speaker(self) -> ToolCall:
        return next(iter(tuple(self.waiting)), self._first)


class SharedOutcome(NamedTuple):
    """What came of a run."""

    output: Any = None
    error: BaseException | None = None
    only_for: ToolCall | None = None
    """The one call that it concerns; None where all who waited share it."""

    def give(self) -> Any:
        """Give the output, or raise what the run raised."""
        if self.error is not None:
            raise self.error
        return self.output


class SharedRun:
    """Work in a task of its own, so that it outlives the call that began it while another one waits.

    Each call waits on its own: its deadline and its cancellation end its wait and nothing else. When the last one has
    left, the work is stopped for the reason that this one left for. So it is when a call leaves that was asked
    something, because then nobody answers; those who still wait begin anew.
    """

    def __init__(
        self, first: ToolCall, digest: str, on_gone: Callable[[], object], close_scope: Callable[[ToolCall], object]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._caller = SharedCaller(first, self._time_anew)
        self._ended: asyncio.Future[SharedOutcome] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._on_gone = on_gone
        self._close_scope = close_scope
        self._settled = False
        self.digest = digest
        """Of the arguments that are no part of the key."""
        self.call = SharedCall(
            first.request_id,
            self._caller,
            first.principal,
            deadline=first.deadline,
            uri=first.uri,
            spec=first.spec,
            raw=first.raw,
            task=first.task,
            arguments=first.arguments,
            extend=None if first.extend is None else self._extend,
            first=first,
        )

    @property
    def stopped(self) -> bool:
        """Whether the work was told to end."""
        return self.call.cancelled

    @property
    def nobody(self) -> ToolCall:
        """A call that nobody waits with, for an outcome that concerns no one."""
        return self.call

    @property
    def asked(self) -> ToolCall:
        """Whom the latest question went to, else the call that began."""
        return self._caller.asked or self.call.first

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run; the key of the run is free when the work has come to its very end."""
        task = self._loop.create_task(work)
        self.call.task = task
        task.add_done_callback(self._close)

    def settle(self) -> None:
        """Say that the code has ended: what is left to do, such as to store the result, is not stopped any more."""
        self._settled = True

    def end(self, outcome: SharedOutcome) -> None:
        """Tell everyone what came of it, and finalise what was made for it."""
        if not self._ended.done():
            self._ended.set_result(outcome)
            self.call.failure = outcome.error
            self._wind_up()

    async def outcome_for(self, call: ToolCall) -> SharedOutcome | None:
        """Wait for what comes of it; None if that is not for this call, which then has to look again.

        A run that has ended cannot be joined: only what is stored of it counts for those who come late.
        """
        if not self._ended.done():
            outcome = await self._waited(call)
            if outcome.only_for is None or outcome.only_for is call:
                call.queued_seconds += self.call.queued_seconds
                return outcome
        await asyncio.shield(self._gone)
        return None

    async def code_ended(self) -> None:
        """Wait until code that went on after the run, as in a thread, has ended too."""
        if self.call.lingers is not None:
            ended = asyncio.Event()
            self.call.lingers(ended.set)
            await ended.wait()

    async def _waited(self, call: ToolCall) -> SharedOutcome:
        self._caller.waiting[call] = None
        self._time_anew()
        try:
            return await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            await self._leave(call)
            raise
        finally:
            self._caller.waiting.pop(call, None)

    async def _leave(self, call: ToolCall) -> None:
        del self._caller.waiting[call]
        if self._settled or (self._caller.waiting and not self._caller.is_asked(call)):
            self._time_anew()
            return
        self.call.stop(call.cancel_reason or CancelReason.DISCONNECT)
        # From here on the code is this call's own: if it does not end, this call is the one that was abandoned.
        if call.abandoned:
            self._abandon()
        else:
            call.when_abandoned(self._abandon)
        await asyncio.shield(self._ended)
        call.lingers = self.call.lingers

    def _abandon(self) -> None:
        self.call.abandon()
        self._wind_up()

    def _wind_up(self) -> None:
        if self.call.scope is not None:
            self._close_scope(self.call)

    def _extend(self, _: ToolCall) -> None:
        for call in tuple(self._caller.waiting):
            if call.extend is not None:
                call.extend(call)
        self._time_anew()

    def _time_anew(self) -> None:
        """Let the run have as much time as who waits longest."""
        if asyncio._get_running_loop() is not self._loop:
            self._loop.call_soon_threadsafe(self._time_anew)
            return
        deadlines = [call.deadline for call in self._caller.waiting]
        if deadlines:
            ends = [deadline for deadline in deadlines if deadline is not None]
            self.call.deadline = max(ends) if len(ends) == len(deadlines) else None

    def _close(self, task: "asyncio.Task[None]") -> None:
        """Let the next one begin; a task that was cancelled before its first step has said nothing yet."""
        self.end(SharedOutcome(error=asyncio.CancelledError(), only_for=self.nobody))
        self._on_gone()
        if not self._gone.done():
            self._gone.set_result(None)
        if not task.cancelled() and task.exception() is not None:
            self._loop.call_exception_handler({"message": "a shared run failed", "exception": task.exception()})
