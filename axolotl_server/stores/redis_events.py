"""Events in Redis, so that a stream can be resumed at another process than the one that speaks on it."""

from collections.abc import Awaitable, Sequence
from typing import Any, Final

from axolotl_core.sessions import IEventStore, StoredEvent, hide_session_id
from axolotl_server.stores.redis_client import RedisClient, RedisScript

_LONGEST_NUMBER: Final = 15

# KEYS: the events of a session, a stream of Redis in which the numbers are the ids; and what is known of them.
# Numbers begin at the time in milliseconds: those of a session whose events have expired are not given a second time.
_APPEND: Final = RedisScript("""\
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
""")
_AFTER: Final = RedisScript("""\
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
""")
_FORGET: Final = RedisScript("""\
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  if entry[2][1] == ARGV[1] then
    redis.call('XDEL', KEYS[1], entry[1])
    redis.call('HINCRBY', KEYS[2], 'bytes', 0 - #entry[2][2])
  end
end
""")


class RedisEventStore(IEventStore):
    """Keeps the newest events of each session until it has been silent for a while; needs the extra `redis`."""

    def __init__(
        self,
        url: str,
        *,
        max_events: int,
        max_bytes: int,
        idle_seconds: float,
        prefix: str = "axolotl:session:",
        timeout_seconds: float = 1.0,
        max_connections: int = 20,
    ) -> None:
        """Say which Redis; it is connected to when it is first needed.

        Raises:
            ConfigurationError: if the URL is none of a Redis.
        """
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._milliseconds = max(1, round(idle_seconds * 1000))
        self._prefix = prefix
        self._redis = RedisClient(
            url, "sessions.redis_url", timeout_seconds=timeout_seconds, max_connections=max_connections
        )

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; one that exceeds the bound all by itself leaves its id and nothing else."""
        kept = message if len(message) <= self._max_bytes else b""
        bounds = (self._max_events, self._max_bytes, self._milliseconds)
        number: bytes = await self._run(_APPEND, session, stream, kept, *bounds)
        return number.decode()

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        """Give what followed an event on its own stream."""
        if not event_id.isdecimal() or len(event_id) > _LONGEST_NUMBER:
            return None
        found = await self._run(_AFTER, session, stream, int(event_id), self._milliseconds)
        if found is None:
            return None
        numbers = iter(found)
        return [StoredEvent(number.decode(), message) for number, message in zip(numbers, numbers, strict=True)]

    async def forget(self, session: str, stream: str | None = None) -> None:
        """Drop a stream or a session."""
        if stream is None:
            await self._redis.ask(self._redis.commands.delete(*self._keys(session)))
        else:
            await self._run(_FORGET, session, stream)

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.close()

    def _run(self, script: RedisScript, session: str, *arguments: str | bytes | int) -> Awaitable[Any]:
        return self._redis.ask(script.run(self._redis.commands, self._keys(session), *arguments))

    def _keys(self, session: str) -> tuple[str, str]:
        name = f"{self._prefix}{hide_session_id(session)}"
        return f"{name}:events", f"{name}:events:known"
