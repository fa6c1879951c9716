"""The work of one tool, done once per key: runs, and the calls that wait for them."""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from pydantic_core import PydanticSerializationError, to_json

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.content import ToolResult
from axolotl_core.errors import (
    ConfigurationError,
    Declined,
    InvalidArguments,
    ProtocolError,
    Refused,
    ToolCancelled,
    ToolError,
    ToolTimeout,
)
from axolotl_core.features.spec import ToolSpec
from axolotl_core.layers import Call, Invoke
from axolotl_core.output import bounded, output_writer
from axolotl_core.policies.tool_rules import CannotAskForApproval, Idempotency
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.protocol.wire import canonical_json
from axolotl_core.questions.question import needs_input
from axolotl_server.layers.idempotency.stored_results import (
    ResultClaim,
    read_record,
    too_large,
    write_failure,
    write_record,
)

if TYPE_CHECKING:
    from axolotl_server.layers.idempotency.layer import IdempotencyLayer

_DIGEST_BYTES: Final = 20
_RECORD_FORMAT: Final = 2
"""To be raised when the form of stored results changes, so that records in the old form are not found."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NOTHING: Final = (b"null", b'""')


class CallKey(NamedTuple):
    """The key of a call, and the digest of the arguments that are not part of it."""

    key: str
    other_arguments: str


MakeKey: TypeAlias = Callable[[Call], CallKey | None]
"""Returns the key of a call; None if it has none."""


def key_compiler(rule: Idempotency, spec: ToolSpec) -> MakeKey:
    """Compile the function that gives the keys of a tool's calls.

    Keys are digests: they are short and reveal nothing about arguments and principals to a store. A rule that names an
    argument which the tool does not have raises ConfigurationError.
    """
    names = rule.arguments
    if not names:
        return lambda call: CallKey(_digest(spec.name, call, [canonical_json(call.raw)]), "")
    readers = {name: _reader(spec, name) for name in names}

    def key_of(call: Call) -> CallKey | None:
        given = _read_fields(call.raw)
        raw = {name: bytes(given.pop(name, b"null")) for name in names}
        if not set(raw.values()).isdisjoint(_NOTHING):
            return None
        values = [canonical_json(read(call.arguments, raw[name])) for name, read in readers.items()]
        rest = canonical_json(msgspec.json.encode(given)) if rule.same_arguments else b""
        return CallKey(_digest(spec.name, call, values), blake2b(rest, digest_size=_DIGEST_BYTES).hexdigest())

    return key_of


def _digest(tool: str, call: Call, values: list[bytes]) -> str:
    whole = msgspec.msgpack.encode((_RECORD_FORMAT, tool, call.principal.identity, values))
    return blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()


def _reader(spec: ToolSpec, name: str) -> Callable[[Any, bytes], bytes]:
    """Compile a reader of the validated value, so that two spellings of a value make one key, or of the raw value."""
    if name not in spec.input_schema.get("properties", {}):
        raise ConfigurationError(
            f"Tool {spec.name!r}: its idempotency names the argument {name!r}, which it does not have"
        )
    fields: Mapping[str, Any] = getattr(spec.tool.input_model, "model_fields", {})
    attribute = next((field for field, info in fields.items() if info.validation_alias == name), name)

    def read(arguments: Any, raw: bytes) -> bytes:
        values = arguments if isinstance(arguments, dict) else vars(arguments)
        try:
            return to_json(values[attribute])
        except (KeyError, PydanticSerializationError):
            return raw

    return read


_log = logging.getLogger("axolotl")

_NOT_COMPLETED: Final = (Declined, InvalidArguments, Refused, ToolCancelled, ToolTimeout)
"""Failures which mean that the work was not done, or not completed; they are never stored."""


_LEFT: Final = (CancelReason.CLIENT, CancelReason.DISCONNECT)
"""The reasons that do not stop work which has begun: only its caller has left."""


class _Outcome(NamedTuple):
    output: Any = None
    error: BaseException | None = None
    is_shared: bool = True
    """Whether it is for all calls that wait, or only for the first one."""


class _RunCall(Call, eq=False, kw_only=True):
    """The call of a run; a run that is stopped stops the call that began it, too."""

    first: Call

    def stop(self, reason: CancelReason) -> None:
        super().stop(reason)
        self.first.stop(reason)
        if self.first.abandoned:
            self.abandon()


class _Run:
    """The work for one key, in a task and with a call of its own, so that it can outlive the call that began it.

    It has the caller and the deadline of that call, which waits for its end. Other calls that wait just leave.
    """

    def __init__(self, first: Call, digest: str, layer: "IdempotencyLayer") -> None:
        loop = asyncio.get_running_loop()
        self.first = first
        self.digest = digest
        """The digest of the arguments that are not part of the key."""
        self.ended: asyncio.Future[_Outcome] = loop.create_future()
        self.freed: asyncio.Future[None] = loop.create_future()
        """Done when other calls may begin work for the key."""
        self.has_begun = False
        self.code_has_ended = False
        """The remaining work, such as storing the result, is not stopped."""
        self._layer = layer
        self.call = _RunCall(
            first.request_id,
            first.caller,
            first.principal,
            uri=first.uri,
            spec=first.spec,
            raw=first.raw,
            task=first.task,
            arguments=first.arguments,
            extend=first.extend,
            reference=first.reference,
            first=first,
        )
        layer.deadlines.move(first, self.call)
        first.when_abandoned(self._abandon)

    def end(self, outcome: _Outcome) -> None:
        """Give the outcome to all waiting calls, and close the scope of the run."""
        if not self.ended.done():
            self.ended.set_result(outcome)
            self.call.failure = outcome.error
            self._close_scope()

    async def outcome_for(self, call: Call) -> _Outcome | None:
        """Wait for the outcome; None if it is not for this call, which then has to try again.

        A run that has ended cannot be joined; later calls get only its stored result.
        """
        if not self.ended.done():
            try:
                outcome = await asyncio.shield(self.ended)
            except asyncio.CancelledError:
                if call is self.first:
                    await self._outlive()
                raise
            if call is self.first or (outcome.is_shared and not self.call.cancelled):
                call.queued_seconds += self.call.queued_seconds
                return outcome
        await asyncio.shield(self.freed)
        return None

    async def _outlive(self) -> None:
        """Wait for the end of the run, whose first caller has left; stop it unless its work can be finished.

        Work that has not begun is not needed, and a question that is open can no longer be answered.
        """
        if self.code_has_ended:
            return
        first, call = self.first, self.call
        reason = first.cancel_reason or CancelReason.DISCONNECT
        if reason not in _LEFT or not self.has_begun or self._layer.deadlines.is_paused(call):
            call.stop(reason)
        try:
            await asyncio.shield(self.ended)
        except asyncio.CancelledError:  # the server stops, and waits for nothing
            call.stop(CancelReason.SHUTDOWN)
            raise
        if first.leftover is None:
            first.leftover = call.leftover
        else:  # the call was abandoned meanwhile
            first.leftover.running += 1
            call.when_code_ended(first.leftover.end)

    def _abandon(self) -> None:
        """Tell the inner layers that the first call was abandoned, unless the work is being finished."""
        if self.call.cancelled and not self.ended.done():
            self.call.abandon()
            self._close_scope()

    def _close_scope(self) -> None:
        if self.call.scope is not None:
            self._layer.close_scope(self.call)


class WorkOnce:
    """Runs the code of one tool once per key."""

    def __init__(self, spec: ToolSpec, call_next: Invoke, rule: Idempotency, layer: "IdempotencyLayer") -> None:
        self._call_next = call_next
        self._rule = rule
        self._layer = layer
        self._key_of = key_compiler(rule, spec)
        self._write_output = output_writer(spec.tool.output_model, lambda: spec.tool.output_adapter)
        self._max_bytes = spec.limits.max_result_bytes or sys.maxsize
        self._running: dict[str, _Run] = {}

    async def invoke(self, call: Call) -> Any:
        """Return the output for the key of a call: that of a running call, a stored one, or a new one."""
        call_key = self._key_of(call)
        if call_key is None:
            return await self._call_next(call)
        while True:
            run = self._running.get(call_key.key) or self._begin(call_key, call)
            if run.digest != call_key.other_arguments:
                raise Refused(
                    "A call with the same key but different arguments is running; use another key",
                    meta=own_meta(reason="key_reused"),
                )
            outcome = await run.outcome_for(call)
            if outcome is None:
                continue
            if outcome.error is not None:
                raise outcome.error
            return outcome.output

    def _begin(self, call_key: CallKey, call: Call) -> _Run:
        run = self._running[call_key.key] = _Run(call, call_key.other_arguments, self._layer)
        working = self._work(run, ResultClaim(self._layer, call_key.key))
        run.call.task = task = asyncio.get_running_loop().create_task(working)
        task.add_done_callback(partial(self._free, call_key.key, run))
        return run

    def _free(self, key: str, run: _Run, task: "asyncio.Task[None]") -> None:
        """Free the key; a task that was cancelled before its first step has not ended the run yet."""
        run.end(_Outcome(error=asyncio.CancelledError(), is_shared=False))
        del self._running[key]
        run.freed.set_result(None)

    async def _work(self, run: _Run, claim: ResultClaim) -> None:
        try:
            run.end(await self._outcome(run, claim))
            code_ended = asyncio.Event()  # code may outlive the run, for example in a thread
            run.call.when_code_ended(code_ended.set)
            await code_ended.wait()
        finally:
            await claim.release()

    async def _outcome(self, run: _Run, claim: ResultClaim) -> _Outcome:
        try:
            record = await claim.take(lambda: run.call.cancelled)
            if record is None:
                run.has_begun = True
                output = bounded(await self._call_next(run.call), self._max_bytes)
            else:
                output = read_record(record, run.digest)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._end_code(run)
            # The errors of stopped code are not the result of the work.
            is_final = not run.call.cancelled and not isinstance(error, _NOT_COMPLETED)
            if self._rule.store_failures and isinstance(error, ToolError) and is_final:
                await self._keep(claim, partial(write_failure, error, run.digest), run)
            # A question, and a client that cannot be asked, concern one caller.
            is_own = needs_input(error) or isinstance(error, ProtocolError | CannotAskForApproval)
            return _Outcome(error=error, is_shared=not is_own)
        self._end_code(run)
        if self._rule.store_failures or not (isinstance(output, ToolResult) and output.is_error):
            await self._keep(claim, lambda: write_record(self._write_output(output), run.digest), run)
        return _Outcome(output)

    def _end_code(self, run: _Run) -> None:
        run.code_has_ended = True
        self._layer.deadlines.end(run.call)

    async def _keep(self, claim: ResultClaim, write: Callable[[], bytes], run: _Run) -> None:
        try:
            record = write()
        except Exception as error:  # sending the result fails for the same reason, and tells the caller
            _log.warning("a result of %s cannot be stored: %s", run.call.spec.name, type(error).__name__)
            return
        if len(record) > self._layer.max_record_bytes:
            record = too_large(len(record), run.digest)
        await claim.keep(record, self._rule.window_seconds)
