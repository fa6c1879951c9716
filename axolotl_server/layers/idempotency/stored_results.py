"""Stored results: the claim on a key, and the bytes of a record.

A record holds an output as it is sent, not the object that the tool returned. So everything that can be sent can be
stored, it is the same when it is read, and nobody can change it in between.
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
_MAX_POLL_FACTOR: Final = 10
"""The longest pause between two polls, as a multiple of the first one."""


class ResultClaim:
    """One attempt to do work once: claims the key, holds it while the work is done, and stores the result."""

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
        """Whether there may be a claim to release."""
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, given_up: Callable[[], bool]) -> bytes | None:
        """Wait for a stored result, or for the claim on the key, which gives None.

        It raises Overloaded if the store is unavailable and calls must not run without it, and CancelledError if all
        callers have given up: the client library of a store may swallow a cancellation.
        """
        pause = self._poll_seconds
        while True:
            found = await self._found()
            if given_up():
                raise asyncio.CancelledError
            if found != "theirs":
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_POLL_FACTOR * self._poll_seconds)

    async def _found(self) -> bytes | Literal["theirs"] | None:
        """Look once; None if the key is ours, or if the store is unavailable and calls may run without it."""
        self._held = True
        try:
            found = await self._within_timeout(self._store.claim(self._key, self._holder))
        except ResultStoreError as error:
            self._handle_outage(error)
            return None
        if found == "mine":
            self._hold()
            return None
        self._held = False
        return found

    async def keep(self, record: bytes, seconds: float) -> None:
        """Store a result; a failure is only logged, because the work is done anyway."""
        if not self._held:
            return
        self._held = False  # after a failure the claim stays until it expires, which delays a second run
        try:
            stored = await self._within_timeout(self._store.keep(self._key, self._holder, record, seconds))
        except ResultStoreError as error:
            _log.error("a result could not be stored, so its work may be done again: %s", error)
            return
        if not stored:
            _log.error("a claim expired before its work was done: another replica may have done the same work")

    async def release(self) -> None:
        """Give up the claim, unless a result is stored."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._held:
            self._held = False
            with contextlib.suppress(ResultStoreError):  # the claim expires anyway
                await self._within_timeout(self._store.release(self._key, self._holder))

    def _handle_outage(self, error: ResultStoreError) -> None:
        self._outages.failed(str(error))
        if self._on_store_failure == "closed":
            refusal = Overloaded("It cannot be guaranteed right now that this runs once; try again", _RETRY_SECONDS)
            refusal.meta = {**(refusal.meta or {}), "reason": "results_unavailable"}
            raise refusal
        self._held = False

    def _hold(self) -> None:
        if self._store.renew_seconds is not None:
            self._renewing = asyncio.create_task(self._renew(self._store.renew_seconds))

    async def _renew(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(ResultStoreError):  # the next attempt may succeed in time
                if not await self._within_timeout(self._store.renew(self._key, self._holder)):
                    _log.error("a claim expired while its work is running: another replica may do the same work")
                    return

    async def _within_timeout(self, answer: Awaitable[ValueT]) -> ValueT:
        """Wait for the store for a limited time; every exception means that it is unavailable."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await answer
        except ResultStoreError:
            raise
        except TimeoutError:
            raise ResultStoreError("no answer in time") from None
        except Exception as error:
            raise ResultStoreError(f"{type(error).__name__}: {error}") from error


WriteOutput: TypeAlias = Callable[[Any, str], bytes]
"""Makes a record of an output and the digest of the other arguments; raises whatever sending the output would raise."""


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
    other_arguments: str
    outcome: _Structured | _Whole | _Failure | _TooLarge


class _Embedded(msgspec.Struct, tag_field="type", tag="resource"):
    """An embedded resource; only its fields tell text from binary data."""

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
    """Compile the function that makes records of a tool's outputs."""
    if not is_structured(spec.tool.output_model):
        return lambda output, other_arguments: _write(_Record(other_arguments, _whole(_result_of(output))))
    adapter, declared = spec.tool.output_adapter, spec.tool.output_model
    check, to_json = adapter.validator.validate_python, adapter.serializer.to_json

    def write(output: Any, other_arguments: str) -> bytes:
        if isinstance(output, ToolResult) and type(output) is not declared:
            return _write(_Record(other_arguments, _whole(output)))
        checked = output if type(output) is declared else check(output)
        return _write(_Record(other_arguments, _Structured(to_json(checked, by_alias=True))))

    return write


def write_failure(error: ToolError, other_arguments: str) -> bytes:
    """Make a record of a tool's failure."""
    return _write(_Record(other_arguments, _Failure(error.message, None if error.meta is None else encode(error.meta))))


def too_large(size: int, other_arguments: str) -> bytes:
    """Make a record of work whose result is too large to be stored."""
    return _write(_Record(other_arguments, _TooLarge(size)))


def read_record(record: bytes, other_arguments: str) -> ToolResult:
    """Give the stored result, marked as replayed.

    It raises the stored failure if there is one, Refused if the other arguments differ or the result was too large to
    store, and msgspec.MsgspecError if the bytes are not a record.
    """
    stored = _read(record)
    if stored.other_arguments != other_arguments:
        raise Refused(
            "A call with the same key but different arguments was made before; use another key",
            meta={"reason": "key_reused"},
        )
    match stored.outcome:
        case _Structured(body):
            return ToolResult((TextContent(body.decode()),), from_json(body), meta={"replayed": True})
        case _Whole(content, structured, is_error, meta):
            value = UNSET if structured is None else from_json(structured)
            return ToolResult(_blocks(content), value, is_error, _mark_replayed(meta))
        case _Failure(message, meta):
            raise ToolError(message, meta=_mark_replayed(meta))
        case _TooLarge(size):
            raise Refused(
                f"This call was made before; its result of {size} bytes was too large to be stored",
                meta={"reason": "replay_too_large", "replayed": True},
            )


def _blocks(content: bytes) -> tuple[ContentBlock, ...]:
    return tuple(stored.block() if isinstance(stored, _Embedded) else stored for stored in _read_blocks(content))


def _mark_replayed(meta: bytes | None) -> Mapping[str, Any]:
    return {**({} if meta is None else msgspec.json.decode(meta)), "replayed": True}


def _whole(result: ToolResult) -> _Whole:
    structured = None if result.structured is UNSET else json_text(result.structured)
    meta = None if result.meta is None else encode(result.meta)
    return _Whole(encode(list(result.content)), structured, result.is_error, meta)


def _result_of(output: Any) -> ToolResult:
    """Give the whole result of an output that has no schema, as it is sent."""
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
