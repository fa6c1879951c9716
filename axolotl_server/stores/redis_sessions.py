"""Session store in Redis, with which every process of a server can serve every client."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from redis.commands.core import AsyncScript

from axolotl_core.sessions import (
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
    hide_session_id,
)
from axolotl_server.stores.redis_client import RedisClient

# KEYS[1] is a session: a hash with its version, its record, its share if it has one, and a field `h:<process>` per
# process that holds a copy. KEYS[2] is a sorted set with the keys of all sessions, by the time
# of their last use in milliseconds; it outlives them by a day, so that expired ones are found after a restart.
# KEYS[2]:<share> is the same for the sessions that count for one principal. ARGV[1] is how long a session may be idle,
# in milliseconds.

_NOW: Final = """\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function use(set, milliseconds)
  redis.call('ZADD', set, now, KEYS[1])
  redis.call('PEXPIRE', set, milliseconds)
end
local function use_all()
  use(KEYS[2], ARGV[1] + 86400000)
  local share = redis.call('HGET', KEYS[1], 'share')
  if share then
    use(KEYS[2] .. ':' .. share, ARGV[1])
  end
end
local function count(set)
  return redis.call('ZCOUNT', set, string.format('(%d', now - ARGV[1]), '+inf')
end
"""

_BEGIN: Final = (
    _NOW
    + """\
if count(KEYS[2]) >= tonumber(ARGV[2]) then
  return 0
end
if ARGV[3] ~= '' then
  local share = KEYS[2] .. ':' .. ARGV[4]
  redis.call('ZREMRANGEBYSCORE', share, '-inf', now - ARGV[1])
  if count(share) >= tonumber(ARGV[3]) then
    return 0
  end
end
redis.call('HSET', KEYS[1], 'version', 1, unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
use_all()
return 1
"""
)
"""ARGV: the maximum number of sessions, the maximum of one share or an empty text, the share, then fields of the hash.
Returns 0 if there are too many sessions."""

_FIND: Final = (
    _NOW
    + """\
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
  return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
use_all()
if version == ARGV[2] then
  return {version}
end
redis.call('HSET', KEYS[1], 'h:' .. ARGV[3], 1)
return {version, redis.call('HGET', KEYS[1], 'record')}
"""
)
"""ARGV: the known version, and the process. Returns the version, and the record if the version is a different one."""

_CHANGE: Final = """\
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
  return false
end
if version ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'record', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'version', 1)
"""
"""ARGV: the version that the new record was made from, and that record. Returns the new version, or 0 if another
process has changed the record."""

_END: Final = """\
redis.call('ZREM', KEYS[2], KEYS[1])
local share = redis.call('HGET', KEYS[1], 'share')
if share then
  redis.call('ZREM', KEYS[2] .. ':' .. share, KEYS[1])
end
return redis.call('DEL', KEYS[1])
"""

_EXPIRE: Final = (
    _NOW
    + """\
local expired = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1])) do
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', KEYS[2], key)
    expired[#expired + 1] = key
  end
end
return expired
"""
)
"""Returns the keys of sessions that have expired, each of them once."""

_SEND: Final = """\
local received, missed = 0, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 2) == 'h:' and field ~= 'h:' .. ARGV[1] then
    if redis.call('PUBLISH', ARGV[2] .. string.sub(field, 3), ARGV[3]) > 0 then
      received = received + 1
    elseif ARGV[4] == 'last' then
      redis.call('HDEL', KEYS[1], field)
    else
      missed = missed + 1
    end
  end
end
return {received, missed}
"""
"""ARGV: the sending process, the prefix of channels, the message, and `last` to drop processes that do not receive it.
Returns how many processes received it, and how many did not and may be reconnecting."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SessionRecord).decode
_SENDER_BYTES: Final = 16
_PAUSES_SECONDS: Final = (0.2, 0.5)
"""How long a process that does not receive a message may take to reconnect."""


class RedisSessionStore(ISessionStore):
    """Keeps sessions in Redis, and sends messages to other processes through channels."""

    def __init__(
        self,
        redis: RedisClient,
        *,
        maximum: int,
        idle_seconds: float,
        timeout_seconds: float = 1.0,
        maximum_per_principal: int | None = None,
    ) -> None:
        self._redis = redis
        self._maximum_per_principal = maximum_per_principal
        self._prefix = f"{redis.prefix}session:"
        self._timeout_seconds = timeout_seconds
        self._within = partial(redis.within, timeout_seconds, SessionStoreError)
        self._maximum = maximum
        self._idle_milliseconds = max(1, round(idle_seconds * 1000))
        self._process = secrets.token_hex(_SENDER_BYTES // 2)
        self._begin, self._find, self._change = map(redis.script, (_BEGIN, _FIND, _CHANGE))
        self._end, self._send, self._expire = map(redis.script, (_END, _SEND, _EXPIRE))
        self._expired: Callable[[Sequence[str]], object] | None = None
        self._channels = f"{self._prefix}process:"
        self._subscription = redis.subscription(f"{self._channels}{self._process}", f"{self._prefix}all")

    def open(
        self,
        receive: Callable[[bytes], object],
        reconnected: Callable[[], object],
        expired: Callable[[Sequence[str]], object],
    ) -> None:
        self._expired = expired

        def receive_from_others(message: bytes) -> None:
            if not message.startswith(self._process.encode()):
                receive(message[_SENDER_BYTES:])

        self._subscription.open(receive_from_others, reconnected)

    async def begin(self, session: str, record: SessionRecord) -> bool:
        await self._subscribed()
        fields: list[str | bytes] = ["record", _encode(record), f"h:{self._process}", "1"]
        if record.share is not None:
            fields += ["share", record.share]
        limit = None if record.share is None else self._maximum_per_principal
        limits = (self._maximum, "" if limit is None else limit, record.share or "")
        return bool(await self._run(self._begin, session, *limits, *fields))

    async def find(self, session: str, known: int) -> KnownSession | None:
        await self._subscribed()
        found = await self._run(self._find, session, known, self._process)
        if found is None:
            return None
        return KnownSession(int(found[0]), _decode(found[1]) if len(found) > 1 else None)

    async def change(self, session: str, change: SessionChange) -> int | None:
        while True:
            found = await self.find(session, 0)
            if found is None or found.record is None:
                return None
            record = _encode(found.record.changed(change))
            version = await self._run(self._change, session, found.version, record)
            if version != 0:  # otherwise, another process was faster
                return None if version is None else int(version)

    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        held = frozenset([one for one in sessions if await self._run(self._find, one, 0, self._process) is not None])
        keys: list[bytes] = await self._run(self._expire, "")
        if keys and self._expired is not None:
            self._expired([key.decode().removeprefix(self._prefix) for key in keys])
        return held

    async def end(self, session: str) -> None:
        await self._run(self._end, session)

    async def send(self, session: str, message: bytes, *, wait: bool = False) -> bool:
        for pause in (*(_PAUSES_SECONDS if wait else ()), None):
            attempt = "last" if pause is None else "again"
            arguments: list[str | bytes] = [self._process, self._channels, self._process.encode() + message, attempt]
            received, missed = await self._within(self._send(keys=[self._key(session)], args=arguments))
            if pause is None or not missed:
                break
            await asyncio.sleep(pause)
        return bool(received)

    async def broadcast(self, message: bytes) -> None:
        channel = f"{self._prefix}all"
        await self._within(self._redis.commands.publish(channel, self._process.encode() + message))

    async def close(self) -> None:
        await self._subscription.close()

    async def _subscribed(self) -> None:
        """Make sure that messages about a session will be received here."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._subscription.subscribed()
        except TimeoutError:
            raise SessionStoreError("Redis is unavailable: messages of other processes cannot be received") from None

    def _run(self, script: AsyncScript, session: str, *arguments: str | bytes | int) -> Awaitable[Any]:
        keys = [self._key(session), f"{self._prefix}alive"]
        return self._within(script(keys=keys, args=[self._idle_milliseconds, *arguments]))

    def _key(self, session: str) -> str:
        return f"{self._prefix}{hide_session_id(session)}"
