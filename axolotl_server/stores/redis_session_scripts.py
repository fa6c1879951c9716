"""What Redis runs for sessions: each of these in one step, in which nothing can come between."""

from typing import Final

from axolotl_server.stores.redis_script import RedisScript

__all__ = ["BEGIN", "CHANGE", "END", "FIND", "HOLD", "TELL"]

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
