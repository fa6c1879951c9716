"""What the processes of a server say to each other about sessions."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from axolotl_core.session_store import ISessionStore, SessionStoreError
from axolotl_server.backlog import Backlog
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.refusals import HttpRefusal

__all__ = ["Sharing", "Word", "WordKind"]

_log = logging.getLogger("axolotl")

AnswerT = TypeVar("AnswerT")

WordKind: TypeAlias = Literal["client", "news", "ended", "listening", "following", "more", "changed", "updated"]

_SILENCE_SECONDS: Final = 10.0
_LAST_SECONDS: Final = 2.0


class Word(msgspec.Struct, array_like=True, frozen=True):
    """One message between processes."""

    kind: WordKind
    session: bytes = b""
    """Its id; empty where it is about a change that concerns all."""
    about: str = ""
    """Which stream, which list or which resource."""
    message: bytes = b""
    """What a client said, or is to be told."""


_read_word = msgspec.msgpack.Decoder(Word).decode
_write_word = msgspec.msgpack.Encoder().encode


class Sharing:
    """Keeps sessions where the others look, and speaks to them; a store that is away means 503."""

    def __init__(self, handler: DefaultHandler, store: ISessionStore) -> None:
        self.handler = handler
        self.store = store
        self._waiting: Backlog[Word] = Backlog()
        self._telling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._silent_until = 0.0

    async def asked(self, question: Awaitable[AnswerT]) -> AnswerT:
        """Wait for the store.

        Raises:
            HttpRefusal: 503 if it is away.
        """
        try:
            return await question
        except SessionStoreError as error:
            self._report(error)
            problem = "Service unavailable: sessions cannot be reached now; try again"
            raise HttpRefusal(503, problem, headers=[(b"retry-after", b"1")]) from None

    async def tell(self, word: Word, *, patient: bool = False) -> bool:
        """Tell everybody else who holds the session; answers False if nobody heard it.

        Raises:
            HttpRefusal: 503 if the store is away.
        """
        told = self.store.tell(word.session.decode("latin-1"), _write_word(word), patient=patient)
        return await self.asked(told)

    def soon(self, word: Word) -> None:
        """Tell the others, or everybody where it is about no session; what there is no way for is dropped."""
        self._waiting.put(word, losable=True)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell_waiting())

    def look_after(self, work: Coroutine[Any, Any, object]) -> None:
        """Do some work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def read(self, data: bytes) -> Word | None:
        """Read a message of another process; None if it speaks a language of another version."""
        try:
            return _read_word(data)
        except msgspec.DecodeError:
            return None

    async def close(self) -> None:
        """Say what waits, and let go of the store."""
        last = {*self._tasks, *(() if self._telling is None else (self._telling,))}
        if last:
            await asyncio.wait(last, timeout=_LAST_SECONDS)
        await self.store.close()

    async def _tell_waiting(self) -> None:
        try:
            while self._waiting:
                word = self._waiting.take()
                try:
                    if word.session:
                        await self.store.tell(word.session.decode("latin-1"), _write_word(word))
                    else:
                        await self.store.announce(_write_word(word))
                except SessionStoreError as error:
                    self._report(error)
        finally:
            self._telling = None

    def _report(self, error: SessionStoreError) -> None:
        """Write to the log that the store is away, once in a while."""
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + _SILENCE_SECONDS
            _log.warning("sessions cannot be shared for now: %s", error)
