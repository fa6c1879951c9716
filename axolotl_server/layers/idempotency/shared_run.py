"""A run of a tool that any number of calls wait for."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.context import Context
from axolotl_core.calls.steps import KeptStep
from axolotl_core.layers import Call
from axolotl_core.protocol.identity import Implementation
from axolotl_core.protocol.messages import LogLevel, TraceContext
from axolotl_core.questions.question import Question
from axolotl_core.tools.tool import ITool

AnswerT = TypeVar("AnswerT")


class SharedCall(Call, eq=False, kw_only=True):
    """The call of a shared run, with a cancellation and a deadline of its own."""

    first: Call
    """The call that started the run."""


class SharedCaller:
    """The callers that wait for a shared run: all get progress and log messages, and one is asked questions.

    That one is the caller that has waited longest. Its clock is paused while it is asked, as if the run were its own.
    """

    def __init__(self, first: Call, on_answer: Callable[[], None]) -> None:
        self.waiting: dict[Call, None] = {}
        self.asked: Call | None = None
        """The call that the latest question went to."""
        self._first = first
        self._on_answer = on_answer
        self._being_asked: list[Call] = []

    @property
    def client(self) -> Implementation | None:
        """The client of the call that started the run."""
        return self._first.client

    @property
    def trace(self) -> TraceContext | None:
        """The trace of the call that started the run."""
        return self._first.trace

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the call that started the run."""
        return self._first.meta

    def is_asked(self, call: Call) -> bool:
        """Tell whether a caller was asked and has not answered yet."""
        return call in self._being_asked

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        for call in tuple(self.waiting):
            call.caller.report_progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        for call in tuple(self.waiting):
            call.caller.log(level, data, logger)

    def declares(self, capability: Mapping[str, Any]) -> bool:
        return self._asked_call.caller.declares(capability)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        return self._asked_call.caller.extension(identifier)

    async def ask(
        self, context: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        asked = self.asked = self._asked_call
        self._being_asked.append(asked)
        try:
            return await asked.caller.ask(asked, question, read, key)
        finally:
            self._being_asked.remove(asked)
            self._on_answer()

    async def recall(self, context: Context, key: str) -> KeptStep:
        return await self._first.caller.recall(self._first, key)

    async def keep(self, context: Context, key: str, value: bytes) -> None:
        await self._first.caller.keep(self._first, key, value)

    async def detach(self, context: Context) -> None:
        await self._first.caller.detach(self._first)

    def url_completed(self, reference: str) -> None:
        self._asked_call.caller.url_completed(reference)

    def hang_up(self) -> None:
        for call in tuple(self.waiting):
            call.caller.hang_up()

    async def visible_tools(self) -> tuple[ITool[Any, Any], ...]:
        return await self._asked_call.caller.visible_tools()

    @property
    def _asked_call(self) -> Call:
        return next(iter(tuple(self.waiting)), self._first)


class SharedOutcome(NamedTuple):
    """The outcome of a shared run."""

    output: Any = None
    error: BaseException | None = None
    only_for: Call | None = None
    """The only call that the outcome is for; None if it is for all that waited."""

    def unwrap(self) -> Any:
        """Return the output, or raise the exception of the run."""
        if self.error is not None:
            raise self.error
        return self.output


class SharedRun:
    """A run in a task of its own, so that it can outlive the call that started it while other calls wait.

    The deadline or the cancellation of a call ends only its own wait. When the last call has left, the run is stopped
    for the reason that this call left for. The run is also stopped when a call leaves that was asked a question: nobody
    else can answer it, and the calls that still wait start again.
    """

    def __init__(
        self, first: Call, digest: str, on_freed: Callable[[], object], close_scope: Callable[[Call], object]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._caller = SharedCaller(first, self._update_deadline)
        self._ended: asyncio.Future[SharedOutcome] = self._loop.create_future()
        self._freed: asyncio.Future[None] = self._loop.create_future()
        self._on_freed = on_freed
        self._close_scope = close_scope
        self._code_ended = False
        self.digest = digest
        """The digest of the arguments that are not part of the key."""
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
        """Whether the run was stopped."""
        return self.call.cancelled

    @property
    def no_call(self) -> Call:
        """A call that never waits, for an outcome that is for no call."""
        return self.call

    @property
    def asked(self) -> Call:
        """The call that the latest question went to, or the call that started the run."""
        return self._caller.asked or self.call.first

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the run; its key becomes free when the work has ended completely."""
        task = self._loop.create_task(work)
        self.call.task = task
        task.add_done_callback(self._close)

    def mark_code_ended(self) -> None:
        """Note that the code has ended; the remaining work, such as storing the result, is not stopped."""
        self._code_ended = True

    def end(self, outcome: SharedOutcome) -> None:
        """Give the outcome to all waiting calls, and close the scope of the run."""
        if not self._ended.done():
            self._ended.set_result(outcome)
            self.call.failure = outcome.error
            self._end_scope()

    async def outcome_for(self, call: Call) -> SharedOutcome | None:
        """Wait for the outcome; None if it is not for this call, which then has to try again.

        A run that has ended cannot be joined; later calls get only its stored result.
        """
        if not self._ended.done():
            outcome = await self._wait(call)
            if outcome.only_for is None or outcome.only_for is call:
                call.queued_seconds += self.call.queued_seconds
                return outcome
        await asyncio.shield(self._freed)
        return None

    async def code_ended(self) -> None:
        """Wait until code that outlives the run, for example in a thread, has ended too."""
        ended = asyncio.Event()
        self.call.when_code_ended(ended.set)
        await ended.wait()

    async def _wait(self, call: Call) -> SharedOutcome:
        self._caller.waiting[call] = None
        self._update_deadline()
        try:
            return await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            await self._leave(call)
            raise
        finally:
            self._caller.waiting.pop(call, None)

    async def _leave(self, call: Call) -> None:
        del self._caller.waiting[call]
        if self._code_ended or (self._caller.waiting and not self._caller.is_asked(call)):
            self._update_deadline()
            return
        self.call.stop(call.cancel_reason or CancelReason.DISCONNECT)
        # From here on the run belongs to this call alone: if its code does not end, this call is abandoned.
        if call.abandoned:
            self._abandon()
        else:
            call.when_abandoned(self._abandon)
        await asyncio.shield(self._ended)
        if call.leftover is None:
            call.leftover = self.call.leftover
        else:  # the call was abandoned meanwhile
            call.leftover.running += 1
            self.call.when_code_ended(call.leftover.end)

    def _abandon(self) -> None:
        self.call.abandon()
        self._end_scope()

    def _end_scope(self) -> None:
        if self.call.scope is not None:
            self._close_scope(self.call)

    def _extend(self, _: Call) -> None:
        for call in tuple(self._caller.waiting):
            if call.extend is not None:
                call.extend(call)
        self._update_deadline()

    def _update_deadline(self) -> None:
        """Give the run as much time as the waiting call with the latest deadline has."""
        if asyncio._get_running_loop() is not self._loop:
            self._loop.call_soon_threadsafe(self._update_deadline)
            return
        deadlines = [call.deadline for call in self._caller.waiting]
        if deadlines:
            ends = [deadline for deadline in deadlines if deadline is not None]
            self.call.deadline = max(ends) if len(ends) == len(deadlines) else None

    def _close(self, task: "asyncio.Task[None]") -> None:
        """Free the key; a task that was cancelled before its first step has not ended the run yet."""
        self.end(SharedOutcome(error=asyncio.CancelledError(), only_for=self.no_call))
        self._on_freed()
        if not self._freed.done():
            self._freed.set_result(None)
        if not task.cancelled() and task.exception() is not None:
            self._loop.call_exception_handler({"message": "a shared run failed", "exception": task.exception()})
