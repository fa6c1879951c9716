"""The session of a client whose requests reach several processes."""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import (
    IEventStore,
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
)
from axolotl_server.asgi.event_stream import EventStream
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.handler import DefaultHandler
from axolotl_server.lifecycle.outage_log import OutageLog
from axolotl_server.messages.flow_control import Backlog
from axolotl_server.sessions.event_archive import STREAM_END, SharedArchive, place_of
from axolotl_server.sessions.session import IAttached, Session, SessionStream
from axolotl_server.sessions.stream_follower import StreamFollower

AnswerT = TypeVar("AnswerT")

WordKind: TypeAlias = Literal["client", "news", "ended", "listening", "following", "more", "changed", "updated"]

_LAST_SECONDS: Final = 2.0


class BusMessage(msgspec.Struct, array_like=True, frozen=True):
    """One message between processes."""

    kind: WordKind
    session: bytes = b""
    """Its id; empty where it is about a change that concerns all."""
    about: str = ""
    """Which stream, which list or which resource."""
    message: bytes = b""
    """What a client said, or is to be told."""


_read_word = msgspec.msgpack.Decoder(BusMessage).decode
_write_word = msgspec.msgpack.Encoder().encode


class SessionBus:
    """Keeps sessions where the others look, and speaks to them; a store that is away means 503."""

    def __init__(self, handler: DefaultHandler, store: ISessionStore) -> None:
        self.handler = handler
        self.store = store
        self._waiting: Backlog[BusMessage] = Backlog()
        self._telling: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._outages = OutageLog("The session store", "operations that failed")

    async def asked(self, question: Awaitable[AnswerT]) -> AnswerT:
        """Wait for the store.

        Raises:
            HttpRefusal: 503 if it is away.
        """
        try:
            return await question
        except SessionStoreError as error:
            self._outages.failed(str(error))
            problem = "Service unavailable: sessions cannot be reached now; try again"
            raise HttpRefusal(503, problem, headers=[(b"retry-after", b"1")]) from None

    async def tell(self, word: BusMessage, *, patient: bool = False) -> bool:
        """Tell everybody else who holds the session; answers False if nobody heard it.

        Raises:
            HttpRefusal: 503 if the store is away.
        """
        told = self.store.send(word.session.decode("latin-1"), _write_word(word), wait=patient)
        return await self.asked(told)

    def soon(self, word: BusMessage) -> None:
        """Tell the others, or everybody where it is about no session; what there is no way for is dropped."""
        self._waiting.put(word, droppable=True)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell_waiting())

    def look_after(self, work: Coroutine[Any, Any, object]) -> None:
        """Do some work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def read(self, data: bytes) -> BusMessage | None:
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
                        await self.store.send(word.session.decode("latin-1"), _write_word(word))
                    else:
                        await self.store.broadcast(_write_word(word))
                except SessionStoreError as error:
                    self._outages.failed(str(error))
        finally:
            self._telling = None


_HIGHEST_FIRST_ID: Final = 2**52


def owner_of(principal: Principal) -> str:
    """Name the owner of a session, in a way that tells nobody who it is."""
    return blake2b(msgspec.json.encode(principal.identity), digest_size=16).hexdigest()


class SharedSession(Session):
    """What one process knows and does of a session; the others hear of what they have to know.

    Calls run, and wait for answers, in the process that their request reached. Streams of calls are spoken on there
    too. The stream for news belongs to the process that its client listened at last.
    """

    __slots__ = ("_followed", "_followers", "_outgoing", "_sharing", "_stored", "version")

    def __init__(
        self,
        principal: Principal,
        store: IEventStore | None,
        retry_seconds: float,
        sharing: SessionBus,
        session_id: bytes | None = None,
    ) -> None:
        super().__init__(principal, None, retry_seconds, session_id)
        if store is not None:
            self._archive = SharedArchive(store, self.name, self._kept)
        self._sharing = sharing
        self._stored: SessionRecord | None = None
        """What the others know, None before they know anything."""
        self.version = 0
        """The version of what is known, 0 where it has to be read anew."""
        self._followed: set[str] = set()
        """Streams of this process that are listened to at another."""
        self._followers: list[StreamFollower] = []
        self._outgoing: list[bytes] = []
        self.forward = self._outgoing.append
        # Questions of several processes must not share an id.
        self.next_id = itertools.count(1 + secrets.randbelow(_HIGHEST_FIRST_ID)).__next__

    @property
    def name(self) -> str:
        """The name that stores know it by."""
        return self.id.decode("latin-1")

    @property
    def in_use(self) -> bool:
        """Whether something here keeps the session alive however old its last request is."""
        return super().in_use or any(follower.connected for follower in self._followers)

    @property
    def is_known(self) -> bool:
        """Whether the others can find it."""
        return self._stored is not None

    def apply(self, found: KnownSession) -> None:
        """Become what the others know."""
        record = found.record
        assert record is not None
        self.version, self._stored = found.version, record
        self.era = self._sharing.handler.era_of(record.revision)
        self.client, self.capabilities = record.client, record.capabilities
        self.initialized, self.log_level = record.initialized, record.log_level
        self.subscriptions = set(record.subscriptions)

    async def settle(self) -> bool:
        """Tell the others what the last message changed, and pass on what is not for here.

        Answers False if there is no room for a new session.

        Raises:
            HttpRefusal: 503 if the store is away.
        """
        if self._stored is None:
            return await self._begin()
        change = self._unsaved(self._stored)
        if change is not None:
            await self._save(change)
        while self._outgoing:
            await self._sharing.tell(BusMessage("client", self.id, message=self._outgoing.pop(0)), patient=True)
        return True

    async def listen(self, outlet: EventStream) -> SessionStream:
        """Begin the stream for news anew; a client that listens somewhere else is heard out there no more."""
        before, stream = self._standalone, self._speak(outlet)
        try:
            await self._take_news(stream.token)
        except BaseException:
            stream.close()
            raise
        self._standalone = stream
        if before is not None:
            before.leave()
            await self._replace(before)
        return stream

    async def resume(self, outlet: EventStream, last_event_id: bytes) -> IAttached | None:
        """Go on with a stream after an event, whichever process speaks on it."""
        place = place_of(last_event_id)
        self._leave_followers(place.stream)
        if self._archive is None or place.stream in self._streams:
            if place.stream in self._followed:
                self._followed.discard(place.stream)
                self._sharing.soon(BusMessage("following", self.id, place.stream))
            return await super().resume(outlet, last_event_id)
        is_news = self._stored is not None and place.stream == self._stored.notification_stream
        if is_news:
            await self._adopt_news(place.stream)
        ask = None if is_news else partial(self._sharing.tell, BusMessage("following", self.id, place.stream))
        follower = StreamFollower(self._archive, place, outlet, ask, self._followers.remove)
        self._followers.append(follower)
        try:
            await follower.begin(primed=self.polls)
        except BaseException:
            self._followers.remove(follower)
            raise
        return follower

    def hear(self, word: BusMessage) -> None:
        """Act on what another process says."""
        if word.kind == "client":
            with suppress(ProtocolError):
                self._sharing.handler.receive_forwarded(word.message, self)
        elif word.kind == "news" and self._standalone is not None:
            self._standalone.put(word.message)
        elif word.kind == "more":
            self.wake_followers(word.about)
        elif word.kind == "following":
            self._let_follow(word.about)
        elif word.kind == "listening" and self._standalone is not None:
            self._give_news_away(self._standalone, word.about)

    def wake_followers(self, stream: str | None = None) -> None:
        """Have those look who follow a stream, or all."""
        for follower in self._followers:
            if stream is None or follower.stream == stream:
                follower.wake()

    def stop_listening(self) -> None:
        """Send clients that listen, or follow, to another process; the session goes on."""
        super().stop_listening()
        for follower in self._followers:
            follower.send_away(self._retry_seconds if self.polls else None)

    def close(self) -> None:
        """End all streams here."""
        super().close()
        for follower in self._followers:
            follower.leave()
        if isinstance(self._archive, SharedArchive):
            self._archive.fall_silent()

    async def _begin(self) -> bool:
        assert self.era is not None
        assert self.client is not None
        record = SessionRecord(owner_of(self.principal), self.era.revision.name, self.client, self.capabilities)
        if not await self._sharing.asked(self._sharing.store.begin(self.name, record)):
            return False
        self._stored, self.version = record, 1
        return True

    def _unsaved(self, known: SessionRecord) -> SessionChange | None:
        change = SessionChange(
            initialized=self.initialized if self.initialized != known.initialized else None,
            log_level=self.log_level if self.log_level != known.log_level else None,
            subscribed=frozenset(self.subscriptions - known.subscriptions),
            unsubscribed=frozenset(known.subscriptions - self.subscriptions),
        )
        return None if change == _NOTHING else change

    async def _save(self, change: SessionChange) -> None:
        before, self.version = self.version, 0  # whatever comes between, or goes wrong, has to be read anew
        version = await self._sharing.asked(self._sharing.store.change(self.name, change))
        assert self._stored is not None
        if version == before + 1 and self.version == 0:
            self.version = version
            self._stored = self._stored.changed(change)

    async def _take_news(self, token: str) -> None:
        """Become the one who speaks on the stream for news."""
        if self._stored is not None and self._stored.notification_stream != token:
            await self._save(SessionChange(notification_stream=token))
        await self._sharing.tell(BusMessage("listening", self.id, token))
        self._sharing.handler.connect(self)

    async def _adopt_news(self, token: str) -> None:
        """Speak on a stream for news that another process began."""
        self._standalone = self._speak(None, token)
        await self._take_news(token)

    def _speak(self, outlet: EventStream | None, token: str | None = None) -> SessionStream:
        retry_seconds = self._retry_seconds if self.polls else None
        stream = SessionStream(self._archive, outlet, retry_seconds, self._drop, token=token, lasting=True)
        self.has_spoken = True
        self._streams[stream.token] = stream
        return stream

    def _give_news_away(self, stream: SessionStream, token: str) -> None:
        """Leave the news to another process: on the same stream, or on one that replaces it."""
        self._standalone = None
        self._sharing.handler.subscriptions.disconnect(self)
        self._leave_followers(stream.token)
        stream.leave()
        if stream.token == token:
            self._followed.add(token)  # for what is still being kept here
            self._drop(stream)
        else:
            self._sharing.look_after(self._replace(stream))

    def _let_follow(self, token: str) -> None:
        """Let a client that came back at another process hear a stream there, and nowhere else."""
        self._leave_followers(token)
        stream = self._streams.get(token)
        if stream is not None:
            stream.leave()
            self._followed.add(token)
            self._sharing.soon(BusMessage("more", self.id, token))

    def _leave_followers(self, stream: str) -> None:
        for follower in self._followers:
            if follower.stream == stream:
                follower.leave()

    def _kept(self, stream: str, message: bytes) -> None:
        self.wake_followers(stream)
        if stream in self._followed:
            self._sharing.soon(BusMessage("more", self.id, stream))
            if message == STREAM_END:
                self._followed.discard(stream)

    def _send(self, message: bytes) -> None:
        if self._standalone is not None:
            self._standalone.put(message)
        elif self._stored is not None and self._stored.notification_stream is not None:
            self._sharing.soon(BusMessage("news", self.id, message=message))


_NOTHING: Final = SessionChange()
