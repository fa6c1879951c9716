"""The runner of tasks: makes the request of a call again, runs it, and notes how it ended."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, ProtocolError
from axolotl_core.layers import Call, CallState, ITask
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.messages import read_head
from axolotl_core.protocol.wire import encode
from axolotl_core.registry import AnyTool
from axolotl_core.task_engine import ITaskRun, ITaskRunner, Outcome, TaskError, TaskRecord
from axolotl_server.calls.feature_method import RequestTarget
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.extensions.tasks.task_call import Design, TaskCall, decode_call
from axolotl_server.extensions.tasks.task_layers import TaskLayers, TaskReference
from axolotl_server.extensions.tasks.task_questions import AskingInTask, Checks
from axolotl_server.features.tools import ToolCatalogue, ToolMethods
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.protocol.connection import Connection, IExchange, IRunning
from axolotl_server.protocol.eras.era import IEra
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.replies import hide_internal
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.observation.otel import Spans

_BUSY_SECONDS = 0.1
"""How long a busy process keeps a task before another one may take it."""

_log: Final = logging.getLogger("axolotl")

RunEnding: TypeAlias = Literal["completed", "failed", "cancelled", "parked", "released"]
"""How a run ended; the last two leave the task open."""
RunEnded: TypeAlias = Callable[[TaskRecord, RunEnding, float], object]
"""Gets the task, the ending of its run, and how many seconds the run took."""


@dataclass(slots=True)
class TaskOrigin:
    """The caller of a task, and its connection if that is in this process."""

    principal: Principal
    connection: Connection | None


class _RunExchange(IExchange):
    """The exchange of a call that runs as a task: its notifications go to the task."""

    status = 200
    headers: Mapping[bytes, bytes] | None = None
    share: Share | None = None
    client_address: str | None = None

    def __init__(self, run: ITaskRun, call: TaskCall, principal: Principal) -> None:
        self.loop = asyncio.get_running_loop()
        self.principal: Principal = principal
        self.headers = call.headers
        self.share = call.share
        self.client_address = call.client_address
        self.reference = call.reference
        self._sends = call.design == "requested"
        self.run = run
        self.early_reply: asyncio.Future[bytes | None] = self.loop.create_future()
        """The reply to a call that was abandoned."""
        self.waits = False
        """Whether the run waits for a slot, so that its code has not begun."""

    def connection(self) -> Connection:
        """Never called: the call knows its connection."""
        raise NotImplementedError

    def open_connection(self) -> Connection:
        """Never called: a task does not begin a handshake."""
        raise NotImplementedError

    def notify(self, message: bytes) -> bool:
        """Send a message of the task; the extension has none."""
        if self._sends:
            self.run.send(message)
        return True

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """End the task although its code has not."""
        if not self.early_reply.done():
            self.early_reply.set_result(reply)


def task_of(call: Call) -> TaskReference:
    """Find the run that a call belongs to, for its audit records."""
    exchange = _exchange_of(call)
    return TaskReference(exchange.reference, exchange.run.record.id, exchange.run.record.run)


@contextmanager
def waiting_run(deadlines: DeadlineTable, call: Call) -> Iterator[None]:
    """Stop the clock of a call while its run waits for a slot."""
    exchange = _exchange_of(call)
    exchange.waits = True
    with deadlines.paused(call):
        yield
    exchange.waits = False


def _exchange_of(call: Call) -> _RunExchange:
    request = call.caller
    assert isinstance(request, Request)
    assert isinstance(request.exchange, _RunExchange)
    return request.exchange


class _RunConnection(Connection):
    """The connection as a task sees it: the client cannot cancel the call of a task like other requests."""

    __slots__ = ("_original", "_stopped", "call")

    def __init__(self, original: Connection) -> None:
        self._original = original
        self._stopped: CancelReason | None = None
        self.call: IRunning | None = None
        """The call, as soon as it runs."""
        super().__init__(original.send)
        self.era, self.client_data = original.era, original.client_data
        self.capability_data = original.capability_data

    def register(self, request_id: RequestId, running: IRunning) -> None:
        self.call = running
        super().register(request_id, running)
        if self._stopped is not None:
            running.stop(self._stopped)

    @property
    def log_level(self) -> str | None:
        """The level that the client has set last."""
        return self._original.log_level

    @log_level.setter
    def log_level(self, level: str | None) -> None:
        """Ignore it: the connection knows."""

    def stop(self, reason: CancelReason) -> None:
        """Stop the call, also one that has not begun yet."""
        self._stopped = reason
        for running in tuple(self.calls.values()):
            running.stop(reason)


@dataclass
class TaskRunner(ITaskRunner):
    """Runs the calls of tasks in this process."""

    tool_methods: ToolMethods
    catalogue: ToolCatalogue
    layers: TaskLayers
    inflight: RunningCalls
    era_of: Callable[[str], IEra]
    deadlines: DeadlineTable
    ask_timeout_seconds: float
    hold_seconds: float | None = None
    """How long a question waits in place; None means until it is answered."""
    checks: Checks = field(default_factory=dict)
    running: dict[str, _RunConnection] = field(default_factory=dict)
    """The calls that run, by the ID of the task."""
    run_ended: RunEnded | None = None
    """Called after each run, if the server has metrics."""
    spans: "Spans | None" = None
    """Makes the spans of runs, if the server has traces."""
    only: frozenset[str] | None = None
    """The tools whose tasks this process runs; None means all."""

    @property
    def tools(self) -> Mapping[str, int]:
        found = (binding.spec for binding in self.catalogue.bindings())
        return {
            spec.name: spec.limits.max_concurrency or 0
            for spec in found
            if spec.tool.task_support != "forbidden" and (self.only is None or spec.name in self.only)
        }

    def may_restart(self, tool: str) -> bool:
        binding = self.catalogue.find(tool)
        return binding is not None and may_restart(binding.spec.tool)

    def stop(self, task_id: str, reason: CancelReason) -> None:
        """Stop the call of a task if it runs here."""
        if task_id in self.running:
            self.running[task_id].stop(reason)

    async def run(self, run: ITaskRun) -> None:
        """Run a call and end its task; a task that is parked, or that can run elsewhere, stays open."""
        call = decode_call(run.call)
        if self.hold_seconds is not None and len(self.inflight) >= self.inflight.free_capacity:
            await asyncio.sleep(_BUSY_SECONDS)
            await run.release()
            return
        origin: TaskOrigin | None = run.origin if call.principal is None else TaskOrigin(call.principal, None)
        if origin is None:
            _log.error("task %s of tool %s does not run: nothing says who called it", run.record.id, run.record.tool)
            await run.end(_failure(InternalError("The caller of the task is unknown"), self.era_of(call.revision)))
            return
        request = self._request_of(run, call, origin)
        connection = request.connection
        assert isinstance(connection, _RunConnection)
        task_id = run.record.id
        self.running[task_id] = connection
        working = asyncio.ensure_future(self._traced_work(run, call, request))
        own = [connection]  # an earlier run of the task, which is parked or lost, may still be ending here
        run.token.on_cancel(partial(_stop_all, own))
        exchange = request.exchange
        assert isinstance(exchange, _RunExchange)
        began = perf_counter()
        try:
            await asyncio.wait((working, exchange.early_reply), return_when=asyncio.FIRST_COMPLETED)
            ending: RunEnding | None = None
            # Code that another process will run again ends the task there, not here because it needs a moment to stop.
            if exchange.early_reply.done() and not self._can_continue_elsewhere(connection.call, run):
                outcome = _outcome_of_reply(call.design, exchange.early_reply.result())
                ending = outcome.status
                await run.end(outcome)
            ending_of_code = await working
            if self.run_ended is not None:
                self.run_ended(run.record, ending or ending_of_code, perf_counter() - began)
        except asyncio.CancelledError:
            working.cancel()
            raise
        finally:
            own.clear()  # the token keeps no reference to the call
            if self.running.get(task_id) is connection:
                del self.running[task_id]

    async def _traced_work(self, run: ITaskRun, call: TaskCall, request: Request) -> RunEnding:
        if self.spans is None:
            return await self._work(run, call.design, request)
        tool = run.record.tool
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "axolotl.task.id": run.record.id,
            "axolotl.task.run": run.record.run,
        }
        with self.spans.apart(f"task {tool}", attributes, call.submitter) as end:
            ending = await self._work(run, call.design, request)
            end(ending)
            return ending

    async def _work(self, run: ITaskRun, design: Design, request: Request) -> RunEnding:
        asking, connection = request.asking, request.connection
        assert isinstance(asking, AskingInTask)
        assert isinstance(connection, _RunConnection)
        outcome = await self._outcome(design, request)
        if asking.parked:
            return "parked"
        refused = isinstance(connection.call, Call) and connection.call.state is CallState.REFUSED
        if refused and self.hold_seconds is not None:  # other calls took the last room, so its code has not run
            await asyncio.sleep(_BUSY_SECONDS)
            await run.release()
            return "released"
        if self._can_continue_elsewhere(connection.call, run):
            await run.release()
            return "released"
        await run.end(outcome)
        return outcome.status

    def _can_continue_elsewhere(self, call: IRunning | None, run: ITaskRun) -> bool:
        """Whether a call was stopped only because this process stops, and may run again or has not begun."""
        if self.hold_seconds is None or not isinstance(call, Call):
            return False
        is_possible = _exchange_of(call).waits or self.may_restart(run.record.tool)
        return call.cancel_reason is CancelReason.SHUTDOWN and is_possible

    async def _outcome(self, design: Design, request: Request) -> Outcome:
        try:
            target = self.tool_methods.locate(request)
            if target.binding is not None:  # the form of the arguments was checked when the call was submitted
                target = RequestTarget(self.layers.bind(target.binding), b"{}" if target.raw == b"null" else target.raw)
            request.target = target
            result = await self.tool_methods.call(request)  # None if its caller has stopped it
        except ProtocolError as error:
            return _failure(error, request.era)
        except asyncio.CancelledError:
            return Outcome("cancelled")
        except Exception as error:
            return _failure(hide_internal(error, request.head.method), request.era)
        return _outcome(design, result, is_error=request.is_error)

    def _request_of(self, run: ITaskRun, call: TaskCall, origin: TaskOrigin) -> Request:
        era = self.era_of(call.revision)
        asking = AskingInTask(
            run,
            call,
            self.deadlines,
            self.checks,
            timeout_seconds=self.ask_timeout_seconds if call.design == "requested" else None,
            hold_seconds=self.hold_seconds if self.may_restart(run.record.tool) else None,
        )
        connection = _RunConnection(origin.connection or _connection_of(call, era))
        exchange = _RunExchange(run, call, origin.principal)
        head = read_head(call.message)
        return Request(head, call.message, era, exchange, connection, asking=asking)


def may_restart(tool: AnyTool) -> bool:
    """Whether the code of a tool may run again from the start; by default only if that changes nothing more."""
    if tool.task_restart is not None:
        return tool.task_restart == "resume"
    return bool(tool.annotations.read_only or tool.annotations.idempotent or tool.idempotency is not None)


def _stop_all(connections: list[_RunConnection], reason: CancelReason) -> None:
    for connection in connections:
        connection.stop(reason)


def _connection_of(call: TaskCall, era: IEra) -> Connection:
    """Make a connection with what is known about a client that is connected to another process."""
    connection = Connection(lambda message: None)  # the client is not connected here
    connection.era, connection.client_data = era, call.client
    connection.capability_data, connection.log_level = call.capabilities, call.log_level
    return connection


def _outcome(design: Design, result: bytes | None, *, is_error: bool) -> Outcome:
    """In the older design a result that is an error means that the task failed, in the newer one it has completed."""
    if result is None:
        return Outcome("cancelled")
    if design == "requested" and is_error:
        return Outcome("failed", "The tool failed", result)
    return Outcome("completed", None, result)


def _outcome_of_reply(design: Design, reply: bytes | None) -> Outcome:
    """Read the reply to a call that was abandoned."""
    if reply is None:
        return Outcome("cancelled")
    content = msgspec.json.decode(reply, type=dict[str, msgspec.Raw])
    if "result" in content:
        return _outcome(design, bytes(content["result"]), is_error=True)
    error = msgspec.json.decode(content["error"], type=TaskError)
    return Outcome("failed", error.message, error=error)


def _failure(error: ProtocolError, era: IEra) -> Outcome:
    """Describe an error; one that cannot be encoded is hidden, because a tool may raise one with any data."""
    try:
        data = None if error.data is None else msgspec.json.decode(encode(error.data))
    except Exception as unwritable:
        error = hide_internal(unwritable, "writing an error")
        data = error.data
    return Outcome("failed", error.message, error=TaskError(era.code_of(error), error.message, data))
