"""Sessions in Redis, so that every process of a server can serve every client."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from axolotl_core.protocol.identity import Implementation
from axolotl_core.sessions import (
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
    hide_session_id,
)
from axolotl_server.stores.redis_client import RedisClient, RedisScript, RedisSubscription, RedisUnavailable

# KEYS[1] is a session: a hash with its version, a field for each part of its record, one that begins with `s:` for
# each URI that is watched, and one that begins with `h:` for each process that holds it. KEYS[2] has the names of all
# sessions, by the time in milliseconds when they were last used. ARGV[1] is how long a session may be idle.

_NOW: Final = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

BEGIN: Final = RedisScript(
    _NOW
    + """\
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1])
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[2], now, KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], 'version', 1, unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
"""
)
"""ARGV: how many sessions there may be, then names and values. Answers 0 if there are too many."""

FIND: Final = RedisScript(
    _NOW
    + """\
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
  return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], now, KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
if version == ARGV[2] then
  return {version}
end
redis.call('HSET', KEYS[1], 'h:' .. ARGV[3], 1)
return {version, redis.call('HGETALL', KEYS[1])}
"""
)
"""ARGV: the version that is known, and who asks. Answers the version, and all fields if it is another one."""

CHANGE: Final = RedisScript("""\
if redis.call('EXISTS', KEYS[1]) == 0 then
  return false
end
local set = tonumber(ARGV[2])
if set > 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV, 3, 2 + set))
end
if #ARGV > 2 + set then
  redis.call('HDEL', KEYS[1], unpack(ARGV, 3 + set))
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'version', 1)
""")
"""ARGV: how many names and values there are to set; these; then the names to remove. Answers the new version."""

HOLD: Final = RedisScript(
    _NOW
    + """\
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'h:' .. ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], now, KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
"""
)
"""ARGV: who holds it. Answers 0 if it has ended."""

END: Final = RedisScript("""\
redis.call('ZREM', KEYS[2], KEYS[1])
return redis.call('DEL', KEYS[1])
""")

TELL: Final = RedisScript("""\
local heard, missed = 0, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 2) == 'h:' and field ~= 'h:' .. ARGV[1] then
    if redis.call('PUBLISH', ARGV[2] .. string.sub(field, 3), ARGV[3]) > 0 then
      heard = heard + 1
    elseif ARGV[4] == 'last' then
      redis.call('HDEL', KEYS[1], field)
    else
      missed = missed + 1
    end
  end
end
return {heard, missed}
""")
"""ARGV: who tells, how channels begin, the message, and `last` to take those for gone who do not hear it. Answers how
many heard it, and how many did not and may be trying to come back."""


_SENDER_BYTES: Final = 16
_PAUSES_SECONDS: Final = (0.2, 0.5)
"""How long somebody who does not hear a message may take to come back."""


class RedisSessionStore(ISessionStore):
    """Keeps sessions where all processes look, and speaks to the others through channels; needs the extra `redis`."""

    def __init__(
        self,
        url: str,
        *,
        maximum: int,
        idle_seconds: float,
        prefix: str = "axolotl:session:",
        timeout_seconds: float = 1.0,
        max_connections: int = 20,
    ) -> None:
        """Say which Redis; it is connected to when it is first needed.

        Raises:
            ConfigurationError: if the URL is none of a Redis.
        """
        self._maximum = maximum
        self._milliseconds = max(1, round(idle_seconds * 1000))
        self._prefix = prefix
        self._timeout_seconds = timeout_seconds
        self._name = secrets.token_hex(_SENDER_BYTES // 2)
        self._redis = RedisClient(
            url, "sessions.redis_url", timeout_seconds=timeout_seconds, max_connections=max_connections
        )
        self._channels = f"{prefix}process:"
        self._subscription = RedisSubscription(url, (f"{self._channels}{self._name}", f"{prefix}all"))

    def open(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        """Begin to hear."""

        def others(message: bytes) -> None:
            if not message.startswith(self._name.encode()):
                receive(message[_SENDER_BYTES:])

        self._subscription.open(others, reconnected)

    async def begin(self, session: str, record: SessionRecord) -> bool:
        """Keep a new session, unless there are too many."""
        await self._joined()
        fields = [*_fields(record), f"h:{self._name}", "1"]
        return bool(await self._run(BEGIN, session, self._maximum, *fields))

    async def find(self, session: str, known: int) -> KnownSession | None:
        """Look for a session, which counts as using it."""
        await self._joined()
        found = await self._run(FIND, session, known, self._name)
        if found is None:
            return None
        return KnownSession(int(found[0]), _record(found[1]) if len(found) > 1 else None)

    async def change(self, session: str, change: SessionChange) -> int | None:
        """Set and remove what became different."""
        fields = [*_change_fields(change)]
        removed = [f"s:{uri}" for uri in change.unsubscribed]
        version = await self._run(CHANGE, session, len(fields), *fields, *removed)
        return None if version is None else int(version)

    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        """Put off the end of sessions."""
        return frozenset([session for session in sessions if await self._run(HOLD, session, self._name)])

    async def end(self, session: str) -> None:
        """Remove a session."""
        await self._run(END, session)

    async def send(self, session: str, message: bytes, *, wait: bool = False) -> bool:
        """Publish a message to each holder."""
        for pause in (*(_PAUSES_SECONDS if wait else ()), None):
            heard, missed = await self._tell(session, message, "last" if pause is None else "again")
            if pause is None or not missed:
                break
            await asyncio.sleep(pause)
        return bool(heard)

    async def broadcast(self, message: bytes) -> None:
        """Publish a message to everybody."""
        await self._asked(self._redis.commands.publish(f"{self._prefix}all", self._name.encode() + message))

    async def close(self) -> None:
        """Hear no more, and close all connections."""
        await self._subscription.close()
        await self._redis.close()

    async def _tell(self, session: str, message: bytes, attempt: str) -> tuple[int, int]:
        told = await self._asked(
            TELL.run(
                self._redis.commands,
                [self._key(session)],
                self._name,
                self._channels,
                self._name.encode() + message,
                attempt,
            )
        )
        return told[0], told[1]

    async def _joined(self) -> None:
        """Make sure that what others say about a session will be heard here."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._subscription.joined()
        except TimeoutError:
            raise SessionStoreError("Redis is away: what other processes say cannot be heard") from None

    def _run(self, script: RedisScript, session: str, *arguments: str | bytes | int) -> Awaitable[Any]:
        keys = [self._key(session), f"{self._prefix}alive"]
        return self._asked(script.run(self._redis.commands, keys, self._milliseconds, *arguments))

    async def _asked(self, question: Awaitable[Any]) -> Any:
        try:
            return await self._redis.ask(question)
        except RedisUnavailable as error:
            raise SessionStoreError(str(error)) from error

    def _key(self, session: str) -> str:
        return f"{self._prefix}{hide_session_id(session)}"


def _fields(record: SessionRecord) -> Iterator[str | bytes]:
    yield from ("owner", record.owner, "revision", record.revision)
    yield from ("client", msgspec.json.encode(record.client))
    yield from ("capabilities", msgspec.json.encode(record.capabilities))
    state = SessionChange(record.initialized, record.log_level, record.notification_stream, record.subscriptions)
    yield from _change_fields(state)


def _change_fields(change: SessionChange) -> Iterator[str | bytes]:
    if change.initialized is not None:
        yield from ("initialized", "1" if change.initialized else "")
    if change.log_level is not None:
        yield from ("log_level", change.log_level)
    if change.notification_stream is not None:
        yield from ("notification_stream", change.notification_stream)
    for uri in change.subscribed:
        yield from (f"s:{uri}", "1")


def _record(flat: Sequence[bytes]) -> SessionRecord:
    values = iter(flat)
    fields = dict(zip(values, values, strict=True))
    log_level, stream = fields.get(b"log_level"), fields.get(b"notification_stream")
    return SessionRecord(
        owner=fields[b"owner"].decode(),
        revision=fields[b"revision"].decode(),
        client=msgspec.json.decode(fields[b"client"], type=Implementation),
        capabilities=msgspec.json.decode(fields[b"capabilities"]),
        initialized=bool(fields[b"initialized"]),
        log_level=None if log_level is None else log_level.decode(),
        subscriptions=frozenset(_uri(name) for name in fields if name.startswith(b"s:")),
        notification_stream=None if stream is None else stream.decode(),
    )


def _uri(field: bytes) -> str:
    """Read a URI, which may be no proper Unicode."""
    return field[2:].decode("utf-8", "surrogatepass")
