"""The work of one tool, done once per key: running calls and the calls that join them."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from pydantic_core import PydanticSerializationError, to_json

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
from axolotl_server.layers.idempotency.shared_run import SharedOutcome, SharedRun
from axolotl_server.layers.idempotency.stored_results import (
    ResultClaim,
    read_record,
    too_large,
    write_failure,
    write_record,
)

_DIGEST_BYTES: Final = 20
_RECORD_FORMAT: Final = 2
"""To be raised when the form of stored results changes, so that records in the old form are not found."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NOTHING: Final = (b"null", b'""')


class CallKey(NamedTuple):
    """The key of a call, and the digest of the arguments that are not part of it."""

    key: str
    other_arguments: str


_Read: TypeAlias = Callable[[Any, bytes], bytes]

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


def _reader(spec: ToolSpec, name: str) -> _Read:
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


@dataclass(frozen=True, slots=True)
class ResultPolicy:
    """The way in which a server keeps the results of its tools."""

    claim: Callable[[str], ResultClaim]
    """Makes a claim on a key."""
    close_scope: Callable[[Call], object]
    """Closes the scope of a run that has ended."""
    max_record_bytes: int


class WorkOnce:
    """Runs the code of one tool once per key."""

    def __init__(self, spec: ToolSpec, call_next: Invoke, rule: Idempotency, policy: ResultPolicy) -> None:
        self._call_next = call_next
        self._rule = rule
        self._policy = policy
        self._key_of = key_compiler(rule, spec)
        self._write_output = output_writer(spec.tool.output_model, lambda: spec.tool.output_adapter)
        self._max_bytes = spec.limits.max_result_bytes or sys.maxsize
        self._running: dict[str, SharedRun] = {}

    async def invoke(self, call: Call) -> Any:
        """Return the output for the key of a call: that of a running call, a stored one, or a new one."""
        call_key = self._key_of(call)
        if call_key is None:
            return await self._call_next(call)
        while True:
            run = self._running.get(call_key.key) or self._begin(call_key, call)
            if run.digest != call_key.other_arguments:
                raise _key_in_use()
            outcome = await run.outcome_for(call)
            if outcome is not None:
                return outcome.unwrap()

    def _begin(self, call_key: CallKey, call: Call) -> SharedRun:
        run = SharedRun(
            call, call_key.other_arguments, partial(self._running.pop, call_key.key), self._policy.close_scope
        )
        self._running[call_key.key] = run
        run.start(self._work(run, self._policy.claim(call_key.key)))
        return run

    async def _work(self, run: SharedRun, claim: ResultClaim) -> None:
        try:
            run.end(await self._outcome(run, claim))
            await run.code_ended()
        finally:
            await claim.release()

    async def _outcome(self, run: SharedRun, claim: ResultClaim) -> SharedOutcome:
        try:
            record = await claim.take(lambda: run.stopped)
            if record is None:
                output = bounded(await self._call_next(run.call), self._max_bytes)
            else:
                output = read_record(record, run.digest)
        except GeneratorExit:
            raise
        except BaseException as error:
            run.mark_code_ended()
            if self._rule.store_failures and isinstance(error, ToolError) and _is_final(error, run):
                await self._keep(claim, partial(write_failure, error, run.digest), run)
            return SharedOutcome(error=error, only_for=_only_for(error, run))
        run.mark_code_ended()
        if self._rule.store_failures or not (isinstance(output, ToolResult) and output.is_error):
            await self._keep(claim, lambda: write_record(self._write_output(output), run.digest), run)
        return SharedOutcome(output)

    async def _keep(self, claim: ResultClaim, write: Callable[[], bytes], run: SharedRun) -> None:
        try:
            record = write()
        except Exception as error:  # sending the result fails for the same reason, and tells the caller
            _log.warning("a result of %s cannot be stored: %s", run.call.spec.name, type(error).__name__)
            return
        if len(record) > self._policy.max_record_bytes:
            record = too_large(len(record), run.digest)
        await claim.keep(record, self._rule.window_seconds)


def _is_final(error: ToolError, run: SharedRun) -> bool:
    """Tell whether a failure is the result of the work; the errors of stopped code are not."""
    return not run.stopped and not isinstance(error, _NOT_COMPLETED)


def _only_for(error: BaseException, run: SharedRun) -> Call | None:
    """Return the only call that a failure is for: a question, and a client that cannot be asked, concern one caller."""
    if run.stopped:
        return run.no_call
    if needs_input(error) or isinstance(error, ProtocolError | CannotAskForApproval):
        return run.asked
    return None


def _key_in_use() -> Refused:
    return Refused(
        "A call with the same key but different arguments is running; use another key",
        meta=own_meta(reason="key_reused"),
    )
