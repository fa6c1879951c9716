"""Stored results: the claim on a key, and the bytes of a record.

A record holds an output as it is sent, not the object that the tool returned. So everything that can be sent can be
stored, it is the same when it is read, and nobody can change it in between.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from axolotl_core.content import ToolResult
from axolotl_core.errors import Overloaded, Refused, ToolError
from axolotl_core.output import read_output
from axolotl_core.policies.tool_rules import ResultStoreError
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.protocol.wire import encode

if TYPE_CHECKING:
    from axolotl_server.layers.idempotency.layer import IdempotencyLayer

ValueT = TypeVar("ValueT")

_log = logging.getLogger("axolotl")

_RETRY_SECONDS: Final = 1.0
_MAX_POLL_FACTOR: Final = 10
"""The longest pause between two polls, as a multiple of the first one."""


class ResultClaim:
    """One attempt to do work once: claims the key, holds it while the work is done, and stores the result."""

    def __init__(self, layer: "IdempotencyLayer", key: str) -> None:
        self._layer = layer
        self._store = layer.store
        self._key = key
        self._holder = secrets.token_hex(16)
        self._held = False
        """Whether there may be a claim to release."""
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, given_up: Callable[[], bool]) -> bytes | None:
        """Wait for a stored result, or for the claim on the key, which gives None.

        It raises Overloaded if the store is unavailable and calls must not run without it, and CancelledError if all
        callers have given up: the client library of a store may swallow a cancellation.
        """
        pause = self._layer.poll_seconds
        while True:
            found = await self._found()
            if given_up():
                raise asyncio.CancelledError
            if found != "theirs":
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_POLL_FACTOR * self._layer.poll_seconds)

    async def _found(self) -> bytes | Literal["theirs"] | None:
        """Look once; None if the key is ours, or if the store is unavailable and calls may run without it."""
        self._held = True
        try:
            found = await self._within_timeout(self._store.claim(self._key, self._holder))
        except ResultStoreError as error:
            self._layer.outages.failed(str(error))
            if self._layer.on_store_failure == "closed":
                refusal = Overloaded("It cannot be guaranteed right now that this runs once; try again", _RETRY_SECONDS)
                refusal.meta = {**(refusal.meta or {}), **own_meta(reason="results_unavailable")}
                raise refusal from error
            self._held = False
            return None
        if found == "mine":
            if self._store.renew_seconds is not None:
                self._renewing = asyncio.create_task(self._renew(self._store.renew_seconds))
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
            async with asyncio.timeout(self._layer.store_timeout_seconds):
                return await answer
        except ResultStoreError:
            raise
        except TimeoutError:
            raise ResultStoreError("no answer in time") from None
        except Exception as error:
            raise ResultStoreError(f"{type(error).__name__}: {error}") from error


class _Output(msgspec.Struct, tag="output", array_like=True):
    data: bytes


class _Failure(msgspec.Struct, tag="failure", array_like=True):
    message: str
    meta: bytes | None


class _TooLarge(msgspec.Struct, tag="too_large", array_like=True):
    size: int


class _Record(msgspec.Struct, array_like=True):
    other_arguments: str
    outcome: _Output | _Failure | _TooLarge


_REPLAYED: Final = own_meta(replayed=True)

_write: Final = msgspec.msgpack.Encoder().encode
_read: Final = msgspec.msgpack.Decoder(_Record).decode


def write_record(output: bytes, other_arguments: str) -> bytes:
    """Make a record of an output and the digest of the other arguments."""
    return _write(_Record(other_arguments, _Output(output)))


def write_failure(error: ToolError, other_arguments: str) -> bytes:
    """Make a record of a tool's failure."""
    return _write(_Record(other_arguments, _Failure(error.message, None if error.meta is None else encode(error.meta))))


def too_large(size: int, other_arguments: str) -> bytes:
    """Make a record of work whose result is too large to be stored."""
    return _write(_Record(other_arguments, _TooLarge(size)))


def read_record(record: bytes, other_arguments: str) -> ToolResult:
    """Return the stored result, marked as replayed.

    It raises the stored failure if there is one, Refused if the other arguments differ or the result was too large to
    store, and ValueError if the bytes are not a record.
    """
    stored = _read(record)
    if stored.other_arguments != other_arguments:
        raise Refused(
            "A call with the same key but different arguments was made before; use another key",
            meta=own_meta(reason="key_reused"),
        )
    match stored.outcome:
        case _Output(data):
            result = read_output(data)
            return msgspec.structs.replace(result, meta={**(result.meta or {}), **_REPLAYED})
        case _Failure(message, meta):
            raise ToolError(message, meta={**({} if meta is None else msgspec.json.decode(meta)), **_REPLAYED})
        case _TooLarge(size):
            raise Refused(
                f"This call was made before; its result of {size} bytes was too large to be stored",
                meta={**own_meta(reason="replay_too_large"), **_REPLAYED},
            )
