"""A session that several processes share, and the messages between them."""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Coroutine
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import (
    IEventStore,
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
)
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream
from axolotl_server.protocol.connection import Audience, Forwarded, MayHear
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.flow_control import Backlog
from axolotl_server.sessions.event_archive import STREAM_END, StreamFollower, parse_event_id
from axolotl_server.sessions.session import IAttached, Session, SessionStream, new_stream_id

AnswerT = TypeVar("AnswerT")

MessageKind: TypeAlias = Literal[
    "client", "notification", "ended", "listening", "following", "more", "changed", "updated"
]

_CLOSE_SECONDS: Final = 2.0


class BusMessage(msgspec.Struct, array_like=True, frozen=True):
    """One message between processes."""

    kind: MessageKind
    session: bytes = b""
    """The id of the session; empty if the message concerns all sessions."""
    about: str = ""
    """The stream, list or resource that the message is about."""
    message: bytes = b""
    """A message of a client, or for a client."""
    sender: bytes = b""
    """The principal that has sent a message of a client, encoded; empty where access is not restricted."""
    audience: Audience | None = None
    """Who may hear a message for a client; None is everybody."""


_encode = msgspec.msgpack.Encoder().encode
_decode_principal = msgspec.msgpack.Decoder(Principal).decode


class SessionBus:
    """Stores sessions and sends messages to other processes. While the store is unavailable, requests get 503."""

    def __init__(self, handler: DefaultHandler, store: ISessionStore) -> None:
        self.handler = handler
        self.store = store
        self._waiting: Backlog[BusMessage] = Backlog()
        self._sending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._outages = OutageLog("The session store", "operations that failed")

    async def ask(self, question: Awaitable[AnswerT]) -> AnswerT:
        """Wait for the store; refuse with 503 if it is unavailable."""
        try:
            return await question
        except SessionStoreError as error:
            self._outages.failed(str(error))
            problem = "Service unavailable: the session store is unavailable; try again"
            raise HttpRefusal(503, problem, headers=[(b"retry-after", b"1")]) from None

    async def send(self, message: BusMessage, *, wait: bool = False) -> bool:
        """Send a message to the other processes with the session; return False if there is none."""
        sending = self.store.send(message.session.decode("latin-1"), _encode(message), wait=wait)
        return await self.ask(sending)

    def send_later(self, message: BusMessage) -> None:
        """Send a message in the background; it is dropped if the store is unavailable."""
        self._waiting.put(message, droppable_bytes=len(message.message))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_waiting())

    def run_in_background(self, work: Coroutine[Any, Any, object]) -> None:
        """Run some work that is not waited for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Send the waiting messages, and close the store."""
        last = {*self._tasks, *(() if self._sending is None else (self._sending,))}
        if last:
            await asyncio.wait(last, timeout=_CLOSE_SECONDS)
        await self.store.close()

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                message = self._waiting.take()
                try:
                    if message.session:
                        await self.store.send(message.session.decode("latin-1"), _encode(message))
                    else:
                        await self.store.broadcast(_encode(message))
                except SessionStoreError as error:
                    self._outages.failed(str(error))
        finally:
            self._sending = None


_HIGHEST_FIRST_ID: Final = 2**52


def owner_of(names: Share) -> str:
    """Return a hash of the owner of a session, or of whom the session counts for."""
    return blake2b(msgspec.json.encode(names), digest_size=16).hexdigest()


class SharedSession(Session):
    """The copy of a shared session in one process.

    A call runs, waits for answers and writes to its stream in the process that received its request. The stream for
    notifications belongs to the process that the client connected to last.
    """

    def __init__(
        self,
        principal: Principal,
        store: IEventStore | None,
        retry_seconds: float,
        bus: SessionBus,
        session_id: bytes | None = None,
        *,
        share: Share | None = None,
    ) -> None:
        super().__init__(principal, store, retry_seconds, session_id, share=share)
        if self._archive is not None:
            self._archive.on_stored = self._event_stored
        self._bus = bus
        self._stored: SessionRecord | None = None
        """The stored state of the session; None before it was stored."""
        self.version = 0
        """The version of the stored state; 0 if it has to be read again."""
        self._followed_elsewhere: set[str] = set()
        """Streams of this process whose clients are connected to another one."""
        self._followers: list[StreamFollower] = []
        self._outgoing: list[Forwarded] = []
        self.forward = self._outgoing.append
        # Questions of different processes must have different ids.
        self.next_id = itertools.count(1 + secrets.randbelow(_HIGHEST_FIRST_ID)).__next__

    @property
    def share_name(self) -> str | None:
        return None if self._stored is None else self._stored.share

    @property
    def in_use(self) -> bool:
        """Whether a call or connection of this process keeps the session alive."""
        return super().in_use or any(follower.connected for follower in self._followers)

    @property
    def reaches_client(self) -> bool:
        return super().reaches_client or (self._stored is not None and self._stored.notification_stream is not None)

    @property
    def is_known(self) -> bool:
        """Whether the session is stored."""
        return self._stored is not None

    def apply(self, found: KnownSession) -> None:
        """Take over the stored state."""
        record = found.record
        assert record is not None
        self.version, self._stored = found.version, record
        self.era = self._bus.handler.era_of(record.revision)
        self.client_data, self.capability_data = record.client, record.capabilities
        self.initialized, self.log_level = record.initialized, record.log_level
        self.subscriptions = set(record.subscriptions)

    async def publish(self) -> bool:
        """Store what the last message changed, and forward messages for other processes.

        Return False if there are too many sessions for a new one.
        """
        if self._stored is None:
            return await self._begin()
        known = self._stored
        change = SessionChange(
            initialized=self.initialized if self.initialized != known.initialized else None,
            log_level=self.log_level if self.log_level != known.log_level else None,
            subscribed=frozenset(self.subscriptions - known.subscriptions),
            unsubscribed=frozenset(known.subscriptions - self.subscriptions),
        )
        if change != SessionChange():
            await self._save(change)
        while self._outgoing:
            message, sender = self._outgoing.pop(0)
            await self._bus.send(BusMessage("client", self.id, message=message, sender=sender), wait=True)
        return True

    async def listen(self, response: EventStream, mark: str = "", may_hear: MayHear | None = None) -> SessionStream:
        """Begin the stream for notifications; an earlier one of the same session ends, in any process."""
        before, stream = self._get_stream, self._begin_stream(response, new_stream_id(mark), outlives_process=True)
        try:
            await self._claim_notifications(stream.id)
        except BaseException:
            stream.close()
            raise
        self._get_stream, self._may_hear = stream, may_hear
        if before is not None:
            before.drop_connection()
            await self._replace(before)
        return stream

    async def resume(self, response: EventStream, last_event_id: bytes, may_hear: MayHear | None = None) -> IAttached:
        """Resume a stream after an event, whichever process writes to it."""
        place = parse_event_id(last_event_id)
        self._end_followers(place.stream)
        if self._archive is None or place.stream in self._streams:
            if place.stream in self._followed_elsewhere:
                self._followed_elsewhere.discard(place.stream)
                self._bus.send_later(BusMessage("following", self.id, place.stream))
            return await super().resume(response, last_event_id, may_hear)
        is_notification_stream = self._stored is not None and place.stream == self._stored.notification_stream
        if is_notification_stream:
            await self._adopt_notifications(place.stream, may_hear)
        ask = (
            None if is_notification_stream else partial(self._bus.send, BusMessage("following", self.id, place.stream))
        )
        follower = StreamFollower(self._archive, place, response, ask, self._followers.remove)
        self._followers.append(follower)
        try:
            await follower.begin(primed=self.polls)
        except BaseException:
            self._followers.remove(follower)
            raise
        return follower

    def send_to(self, audience: Audience | None, message: bytes) -> None:
        if audience is None or self._get_stream is not None:
            super().send_to(audience, message)
        else:
            self._send(message, audience)

    def receive(self, message: BusMessage) -> None:
        """Handle a message of another process."""
        if message.kind == "client":
            sender = _decode_principal(message.sender) if message.sender else None
            self._bus.run_in_background(self._bus.handler.control.receive_forwarded(message.message, self, sender))
        elif message.kind == "notification" and self._get_stream is not None:
            self.send_to(message.audience, message.message)
        elif message.kind == "more":
            self.wake_followers(message.about)
        elif message.kind == "following":
            self._allow_follower(message.about)
        elif message.kind == "listening" and self._get_stream is not None:
            self._hand_over_notifications(self._get_stream, message.about)

    def wake_followers(self, stream: str | None = None) -> None:
        """Let the followers of a stream, or of all streams, look for new events."""
        for follower in self._followers:
            if stream is None or follower.stream == stream:
                follower.wake()

    def stop_listening(self) -> None:
        """Close connections for notifications, so that clients reconnect to another process; the session continues."""
        super().stop_listening()
        for follower in self._followers:
            follower.send_away(self._retry_seconds if self.polls else None)

    def close(self) -> None:
        """End all streams of this process."""
        super().close()
        for follower in self._followers:
            follower.drop_connection()
        if self._archive is not None:
            self._archive.on_stored = None

    async def _begin(self) -> bool:
        assert self.era is not None
        assert self.client_data is not None
        share = None if self.share is None else owner_of(self.share)
        record = SessionRecord(
            owner_of(self.principal.identity),
            self.era.revision.name,
            self.client_data,
            self.capability_data,
            share=share,
        )
        if not await self._bus.ask(self._bus.store.begin(self.name, record)):
            return False
        self._stored, self.version = record, 1
        return True

    async def _save(self, change: SessionChange) -> None:
        before, self.version = self.version, 0  # if anything interferes or fails, the state is read again
        version = await self._bus.ask(self._bus.store.change(self.name, change))
        assert self._stored is not None
        if version == before + 1 and self.version == 0:
            self.version = version
            self._stored = self._stored.changed(change)

    async def _claim_notifications(self, stream_id: str) -> None:
        """Become the process that writes to the stream for notifications."""
        if self._stored is not None and self._stored.notification_stream != stream_id:
            await self._save(SessionChange(notification_stream=stream_id))
        await self._bus.send(BusMessage("listening", self.id, stream_id))
        self._bus.handler.connect(self)

    async def _adopt_notifications(self, stream_id: str, may_hear: MayHear | None) -> None:
        """Continue a stream for notifications that another process began."""
        self._may_hear = may_hear
        stream = self._get_stream = self._begin_stream(None, stream_id, outlives_process=True)
        try:
            await self._claim_notifications(stream_id)
        except BaseException:  # the other process still has it, and the client may try again
            self._get_stream = None if self._get_stream is stream else self._get_stream
            self._drop(stream)
            raise

    def _hand_over_notifications(self, stream: SessionStream, stream_id: str) -> None:
        """Leave notifications to another process, which continues the stream or replaces it."""
        self._get_stream = None
        self._bus.handler.subscriptions.disconnect(self)
        self._end_followers(stream.id)
        stream.drop_connection()
        if stream.id == stream_id:
            self._followed_elsewhere.add(stream_id)  # for events that this process is still storing
            self._drop(stream)
        else:
            self._bus.run_in_background(self._replace(stream))

    def _allow_follower(self, stream_id: str) -> None:
        """Let another process send a stream to its client, which has reconnected there."""
        self._end_followers(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.drop_connection()
            self._followed_elsewhere.add(stream_id)
            self._bus.send_later(BusMessage("more", self.id, stream_id))

    def _end_followers(self, stream: str) -> None:
        for follower in self._followers:
            if follower.stream == stream:
                follower.drop_connection()

    def _event_stored(self, stream: str, message: bytes) -> None:
        self.wake_followers(stream)
        if stream in self._followed_elsewhere:
            self._bus.send_later(BusMessage("more", self.id, stream))
            if message == STREAM_END:
                self._followed_elsewhere.discard(stream)

    def _send(self, message: bytes, audience: Audience | None = None) -> None:
        if self._get_stream is not None:
            self._get_stream.put(message)
        elif self._stored is not None and self._stored.notification_stream is not None:
            self._bus.send_later(BusMessage("notification", self.id, message=message, audience=audience))
