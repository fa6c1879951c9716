"""What came of a call as bytes that a store can keep, and back.

An output is stored as what its caller is told, not as the object that the tool gave: whatever can be sent can be
stored, it comes back the same, and nobody can change it meanwhile.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET
from pydantic import BaseModel
from pydantic_core import from_json

from axolotl_core.content import (
    BLOCKS,
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
    ToolResult,
    is_structured,
)
from axolotl_core.errors import Overloaded, Refused, ToolError
from axolotl_core.features.spec import ToolSpec
from axolotl_core.policies.tool_rules import IResultStore, ResultStoreError
from axolotl_core.protocol.wire import encode, json_text

if TYPE_CHECKING:
    from axolotl_server.lifecycle.outage_log import OutageLog

ValueT = TypeVar("ValueT")
OnStoreFailure: TypeAlias = Literal["open", "closed"]

_log = logging.getLogger("axolotl")

_RETRY_SECONDS: Final = 1.0
_SLOWEST_POLL: Final = 10
"""How many times as long as the first the longest pause between two looks is."""


class ResultClaim:
    """One attempt to have work done once: take the key, hold it while the work goes on, keep what came of it."""

    def __init__(
        self,
        store: IResultStore,
        key: str,
        *,
        on_store_failure: OnStoreFailure,
        outages: "OutageLog",
        timeout_seconds: float = 1.0,
        poll_seconds: float = 0.05,
    ) -> None:
        self._store = store
        self._key = key
        self._holder = secrets.token_hex(16)
        self._on_store_failure: OnStoreFailure = on_store_failure
        self._outages = outages
        self._timeout_seconds = timeout_seconds
        self._poll_seconds = poll_seconds
        self._held = False
        """Whether there may be something to release."""
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, given_up: Callable[[], bool]) -> bytes | None:
        """Wait until there is a result, or until the key is ours, which gives None.

        Raises:
            Overloaded: if the store is away and nothing may run without it.
            asyncio.CancelledError: if all have given up; a client of a store may swallow a cancellation.
        """
        pause = self._poll_seconds
        while True:
            found = await self._found()
            if given_up():
                raise asyncio.CancelledError
            if found != "theirs":
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, _SLOWEST_POLL * self._poll_seconds)

    async def _found(self) -> bytes | Literal["theirs"] | None:
        """Look once; None where the key is ours, or where the store is away and it does not matter."""
        self._held = True
        try:
            found = await self._asked(self._store.claim(self._key, self._holder))
        except ResultStoreError as error:
            self._do_without(error)
            return None
        if found == "mine":
            self._hold()
            return None
        self._held = False
        return found

    async def keep(self, record: bytes, seconds: float) -> None:
        """Store what came of the work; it was done whether this succeeds or not, so a failure is only logged."""
        if not self._held:
            return
        self._held = False  # if it fails the claim is left to expire: the later the work can be done again, the better
        try:
            kept = await self._asked(self._store.keep(self._key, self._holder, record, seconds))
        except ResultStoreError as error:
            _log.error("a result that must not be made twice could not be stored: %s", error)
            return
        if not kept:
            _log.error("a claim was lost while its work was done: the work may have been done twice")

    async def release(self) -> None:
        """Let go of the key, unless a result is stored under it."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._held:
            self._held = False
            with contextlib.suppress(ResultStoreError):  # it expires by itself
                await self._asked(self._store.release(self._key, self._holder))

    def _do_without(self, error: ResultStoreError) -> None:
        self._outages.failed(str(error))
        if self._on_store_failure == "closed":
            refusal = Overloaded(
                "It cannot be made sure for now that this is done only once; try again", _RETRY_SECONDS
            )
            refusal.meta = {**(refusal.meta or {}), "reason": "results_unavailable"}
            raise refusal
        self._held = False

    def _hold(self) -> None:
        if self._store.renew_seconds is not None:
            self._renewing = asyncio.create_task(self._renew(self._store.renew_seconds))

    async def _renew(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(ResultStoreError):  # the next one may succeed in time
                if not await self._asked(self._store.renew(self._key, self._holder)):
                    _log.error("a claim was lost while its work goes on: another replica may do it again")
                    return

    async def _asked(self, answering: Awaitable[ValueT]) -> ValueT:
        """Wait for the store, but not for long; whatever it raises means that it is away."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await answering
        except ResultStoreError:
            raise
        except TimeoutError:
            raise ResultStoreError("no answer in time") from None
        except Exception as error:
            raise ResultStoreError(f"{type(error).__name__}: {error}") from error


WriteOutput: TypeAlias = Callable[[Any, str], bytes]
"""Makes a record of an output and the digest of the arguments beside the key; raises what sending it would raise."""


class _Structured(msgspec.Struct, tag="structured", array_like=True):
    body: bytes


class _Whole(msgspec.Struct, tag="whole", array_like=True):
    content: bytes
    structured: bytes | None
    is_error: bool
    meta: bytes | None


class _Failure(msgspec.Struct, tag="failure", array_like=True):
    message: str
    meta: bytes | None


class _TooLarge(msgspec.Struct, tag="too_large", array_like=True):
    size: int


class _Record(msgspec.Struct, array_like=True):
    others: str
    told: _Structured | _Whole | _Failure | _TooLarge


class _Embedded(msgspec.Struct, tag_field="type", tag="resource"):
    """An embedded resource, whose form only its own fields tell."""

    resource: msgspec.Raw
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")

    def block(self) -> EmbeddedResource:
        is_blob = "blob" in _read_fields(self.resource)
        resource = _read_blob(self.resource) if is_blob else _read_text(self.resource)
        return EmbeddedResource(resource, self.annotations, self.meta)


_Stored: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | _Embedded

_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_text: Final = msgspec.json.Decoder(TextResource).decode
_read_blob: Final = msgspec.json.Decoder(BlobResource).decode
_read_blocks: Final = msgspec.json.Decoder(tuple[_Stored, ...]).decode
_write: Final = msgspec.msgpack.Encoder().encode
_read: Final = msgspec.msgpack.Decoder(_Record).decode


def output_writer(spec: ToolSpec) -> WriteOutput:
    """Compile what makes records of a tool's outputs."""
    if not is_structured(spec.tool.output_model):
        return lambda output, others: _write(_Record(others, _whole(_result_of(output))))
    adapter, declared = spec.tool.output_adapter, spec.tool.output_model
    check, to_json = adapter.validator.validate_python, adapter.serializer.to_json

    def write(output: Any, others: str) -> bytes:
        if isinstance(output, ToolResult) and type(output) is not declared:
            return _write(_Record(others, _whole(output)))
        checked = output if type(output) is declared else check(output)
        return _write(_Record(others, _Structured(to_json(checked, by_alias=True))))

    return write


def write_failure(error: ToolError, others: str) -> bytes:
    """Make a record of what a tool raised."""
    return _write(_Record(others, _Failure(error.message, None if error.meta is None else encode(error.meta))))


def too_large(size: int, others: str) -> bytes:
    """Make the record of work that was done but whose result is not kept."""
    return _write(_Record(others, _TooLarge(size)))


def read_record(record: bytes, others: str) -> ToolResult:
    """Give the result that is in a record, marked as one that was given before.

    Raises:
        ToolError: if that is what is stored.
        Refused: if the other arguments differ, or the result was too large to be stored.
        msgspec.MsgspecError: if it is no record.
    """
    kept = _read(record)
    if kept.others != others:
        raise Refused(
            "A call with the same key, but other arguments, was made before; use another key for another call",
            meta={"reason": "key_reused"},
        )
    match kept.told:
        case _Structured(body):
            return ToolResult((TextContent(body.decode()),), from_json(body), meta={"replayed": True})
        case _Whole(content, structured, is_error, meta):
            value = UNSET if structured is None else from_json(structured)
            return ToolResult(_blocks(content), value, is_error, _marked(meta))
        case _Failure(message, meta):
            raise ToolError(message, meta=_marked(meta))
        case _TooLarge(size):
            raise Refused(
                f"This was done before; its result has {size} bytes, too many to be stored",
                meta={"reason": "replay_too_large", "replayed": True},
            )


def _blocks(content: bytes) -> tuple[ContentBlock, ...]:
    return tuple(stored.block() if isinstance(stored, _Embedded) else stored for stored in _read_blocks(content))


def _marked(meta: bytes | None) -> Mapping[str, Any]:
    return {**({} if meta is None else msgspec.json.decode(meta)), "replayed": True}


def _whole(result: ToolResult) -> _Whole:
    structured = None if result.structured is UNSET else json_text(result.structured)
    meta = None if result.meta is None else encode(result.meta)
    return _Whole(encode(list(result.content)), structured, result.is_error, meta)


def _result_of(output: Any) -> ToolResult:
    """Give the whole result of an output without a declared form, as it is sent."""
    if isinstance(output, ToolResult):
        return output
    if isinstance(output, str):
        return ToolResult((TextContent(_encodable(output)),))
    if output is None:
        return ToolResult()
    if isinstance(output, BLOCKS):
        return ToolResult((output,))
    if isinstance(output, Sequence) and all(isinstance(item, BLOCKS) for item in output):
        return ToolResult(output)
    text = json_text(output).decode()
    return ToolResult((TextContent(text),), output if isinstance(output, Mapping | BaseModel) else UNSET)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
