"""Event store in Redis, with which any process can resume a stream."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final

from redis.commands.core import AsyncScript

from axolotl_core.sessions import IEventStore, SessionStoreError, StoredEvent
from axolotl_server.stores.redis_client import RedisClient

_LONGEST_NUMBER: Final = 15

# KEYS: the events of a session, as a Redis stream whose IDs are the numbers of the events; and a hash with the first
# and the last number and the size. Numbers begin at the time in milliseconds, so that a session whose events have
# expired never uses a number twice.
_APPEND: Final = """\
local last = redis.call('HGET', KEYS[2], 'last')
if not last then
  local time = redis.call('TIME')
  last = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[2], 'base', last, 'last', last, 'bytes', 0)
end
local number = string.format('%d', redis.call('HINCRBY', KEYS[2], 'last', 1))
redis.call('XADD', KEYS[1], number .. '-0', ARGV[1], ARGV[2])
local bytes = redis.call('HINCRBY', KEYS[2], 'bytes', #ARGV[2])
local count = redis.call('XLEN', KEYS[1])
while count > tonumber(ARGV[3]) or bytes > tonumber(ARGV[4]) do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[1], oldest[1])
  bytes = redis.call('HINCRBY', KEYS[2], 'bytes', 0 - #oldest[2][2])
  count = count - 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return number
"""
_AFTER: Final = """\
local stream, number = ARGV[1], tonumber(ARGV[2])
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not first then
  return false
end
local id = string.format('%d-0', number)
local exact = redis.call('XRANGE', KEYS[1], id, id)[1]
local oldest = tonumber(string.match(first[1], '^%d+'))
local dropped = number < oldest and number > tonumber(redis.call('HGET', KEYS[2], 'base') or oldest)
if not (dropped or exact and exact[2][1] == stream) then
  return false
end
local found = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], string.format('%d-0', number + 1), '+')) do
  if entry[2][1] == stream then
    found[#found + 1] = string.match(entry[1], '^%d+')
    found[#found + 1] = entry[2][2]
  end
end
if dropped and #found == 0 then
  return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return found
"""
_FORGET: Final = """\
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  if entry[2][1] == ARGV[1] then
    redis.call('XDEL', KEYS[1], entry[1])
    redis.call('HINCRBY', KEYS[2], 'bytes', 0 - #entry[2][2])
  end
end
"""


class RedisEventStore(IEventStore):
    """Keeps the newest events of each session until the session has been idle for a while."""

    def __init__(
        self,
        redis: RedisClient,
        *,
        max_events: int,
        max_bytes: int,
        idle_seconds: float,
        timeout_seconds: float = 1.0,
    ) -> None:
        self._redis = redis
        self._prefix = f"{redis.prefix}session:"
        self._within = partial(redis.within, timeout_seconds, SessionStoreError)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._idle_milliseconds = max(1, round(idle_seconds * 1000))
        self._append, self._after, self._forget = map(redis.script, (_APPEND, _AFTER, _FORGET))

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; of one that exceeds the limit by itself, only the ID is kept."""
        kept = message if len(message) <= self._max_bytes else b""
        limits = (self._max_events, self._max_bytes, self._idle_milliseconds)
        number: bytes = await self._run(self._append, session, stream, kept, *limits)
        return number.decode()

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        if not event_id.isdecimal() or len(event_id) > _LONGEST_NUMBER:
            return None
        found = await self._run(self._after, session, stream, int(event_id), self._idle_milliseconds)
        if found is None:
            return None
        numbers = iter(found)
        return [StoredEvent(number.decode(), message) for number, message in zip(numbers, numbers, strict=True)]

    async def forget(self, session: str, stream: str | None = None) -> None:
        if stream is None:
            await self._within(self._redis.commands.delete(*self._keys(session)))
        else:
            await self._run(self._forget, session, stream)

    def _run(self, script: AsyncScript, session: str, *arguments: str | bytes | int) -> Awaitable[Any]:
        return self._within(script(keys=self._keys(session), args=arguments))

    def _keys(self, session: str) -> list[str]:
        name = f"{self._prefix}{session}"
        return [f"{name}:events", f"{name}:events:known"]
