"""The work of one tool, done once for each key: what runs, who joins it, and what is kept of it."""

import logging
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
from axolotl_core.layers import Invoke, ToolCall
from axolotl_core.policies.tool_rules import CannotAskForApproval, Idempotency
from axolotl_core.protocol.wire import canonical_json
from axolotl_core.questions.question import needs_input
from axolotl_server.layers.idempotency.shared_run import SharedOutcome, SharedRun
from axolotl_server.layers.idempotency.stored_results import (
    ResultClaim,
    output_writer,
    read_record,
    too_large,
    write_failure,
)

_DIGEST_BYTES: Final = 20
_RECORD_FORMAT: Final = 1
"""To be raised when the form of stored results changes, so that nobody reads one in another form."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NOTHING: Final = (b"null", b'""')


class CallKey(NamedTuple):
    """The key of a call, and the digest of the arguments that are no part of it."""

    key: str
    others: str


_Read: TypeAlias = Callable[[Any, bytes], bytes]

NameCall: TypeAlias = Callable[[ToolCall], CallKey | None]
"""Gives the key of a call; None where it has none."""


def call_namer(rule: Idempotency, spec: ToolSpec) -> NameCall:
    """Compile what names the calls of a tool.

    Keys are digests: they are short, and a store learns nothing of arguments and principals from them.

    Raises:
        ConfigurationError: if the tool has no argument of that name.
    """
    names = rule.arguments
    if not names:
        return lambda call: CallKey(_digest(spec.name, call, [canonical_json(call.raw)]), "")
    readers = {name: _reader(spec, name) for name in names}

    def named(call: ToolCall) -> CallKey | None:
        given = _read_fields(call.raw)
        raw = {name: bytes(given.pop(name, b"null")) for name in names}
        if not set(raw.values()).isdisjoint(_NOTHING):
            return None
        values = [canonical_json(read(call.arguments, raw[name])) for name, read in readers.items()]
        others = canonical_json(msgspec.json.encode(given)) if rule.same_arguments else b""
        return CallKey(_digest(spec.name, call, values), blake2b(others, digest_size=_DIGEST_BYTES).hexdigest())

    return named


def _digest(tool: str, call: ToolCall, values: list[bytes]) -> str:
    whole = msgspec.msgpack.encode((_RECORD_FORMAT, tool, call.principal.identity, values))
    return blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()


def _reader(spec: ToolSpec, name: str) -> _Read:
    """Find the validated value of an argument, so that two spellings of one value are one key; else take it as sent."""
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

_NOT_OF_THE_TOOL: Final = (Declined, InvalidArguments, Refused, ToolCancelled, ToolTimeout)
"""Failures that say that the work was not done, or not ended: none of them is ever stored."""


@dataclass(frozen=True, slots=True)
class ResultPolicy:
    """How the results of a server's tools are kept."""

    claim: Callable[[str], ResultClaim]
    """Makes the claim on a key."""
    close_scope: Callable[[ToolCall], object]
    """Finalises things that were made for a run when it has ended."""
    max_record_bytes: int


class WorkOnce:
    """The work of one tool."""

    def __init__(self, spec: ToolSpec, call_next: Invoke, rule: Idempotency, keeping: ResultPolicy) -> None:
        self._call_next = call_next
        self._rule = rule
        self._keeping = keeping
        self._name_call = call_namer(rule, spec)
        self._write_output = output_writer(spec)
        self._running: dict[str, SharedRun] = {}

    async def invoke(self, call: ToolCall) -> Any:
        """Give what comes, or came, of the work of the call's key."""
        named = self._name_call(call)
        if named is None:
            return await self._call_next(call)
        while True:
            run = self._running.get(named.key) or self._begin(named, call)
            if run.digest != named.others:
                raise _reused()
            outcome = await run.outcome_for(call)
            if outcome is not None:
                return outcome.give()

    def _begin(self, named: CallKey, call: ToolCall) -> SharedRun:
        run = SharedRun(call, named.others, partial(self._running.pop, named.key), self._keeping.close_scope)
        self._running[named.key] = run
        run.start(self._work(run, self._keeping.claim(named.key)))
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
            output = await self._call_next(run.call) if record is None else read_record(record, run.digest)
        except GeneratorExit:
            raise
        except BaseException as error:
            run.settle()
            if self._rule.store_failures and isinstance(error, ToolError) and _is_final(error, run):
                await self._keep(claim, partial(write_failure, error, run.digest), run)
            return SharedOutcome(error=error, only_for=_concerned(error, run))
        run.settle()
        if self._rule.store_failures or not (isinstance(output, ToolResult) and output.is_error):
            await self._keep(claim, partial(self._write_output, output, run.digest), run)
        return SharedOutcome(output)

    async def _keep(self, claim: ResultClaim, write: Callable[[], bytes], run: SharedRun) -> None:
        try:
            record = write()
        except Exception as error:  # what cannot be written cannot be sent either, and is told when that is tried
            _log.warning("a result of %s cannot be stored: %s", run.call.spec.name, type(error).__name__)
            return
        if len(record) > self._keeping.max_record_bytes:
            record = too_large(len(record), run.digest)
        await claim.keep(record, self._rule.window_seconds)


def _is_final(error: ToolError, run: SharedRun) -> bool:
    """Tell whether a failure is what came of the work: code that was stopped may say anything."""
    return not run.stopped and not isinstance(error, _NOT_OF_THE_TOOL)


def _concerned(error: BaseException, run: SharedRun) -> ToolCall | None:
    """Say for whom a failure is: a question, and a client that cannot be asked, is a matter of one caller alone."""
    if run.stopped:
        return run.nobody
    if needs_input(error) or isinstance(error, ProtocolError | CannotAskForApproval):
        return run.asked
    return None


def _reused() -> Refused:
    return Refused(
        "A call with the same key, but other arguments, is running; use another key for another call",
        meta={"reason": "key_reused"},
    )
