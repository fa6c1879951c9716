"""Result store in Redis, which keeps replicas of a server from doing the same work twice."""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from redis.commands.core import AsyncScript

from axolotl_core.policies.tool_rules import ClaimResult, IResultStore, ResultStoreError
from axolotl_server.stores.redis_client import RedisClient

_CLAIM: Final = b"c:"
_RESULT: Final = b"r:"

_RENEW: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
_RELEASE: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
_KEEP: Final = """\
local kept = redis.call('GET', KEYS[1])
if kept and kept ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""


class RedisResultStore(IResultStore):
    """Keeps claims and results in Redis.

    A claim expires unless it is renewed, so that another replica can do the work of one that died. Results expire as
    the tool says; Redis must not evict them earlier.
    """

    def __init__(self, redis: RedisClient, *, claim_seconds: float = 10.0, timeout_seconds: float = 1.0) -> None:
        self._redis = redis
        self._prefix = f"{redis.prefix}result:"
        self._within = partial(redis.within, timeout_seconds, ResultStoreError)
        self._claim_milliseconds = max(1, round(claim_seconds * 1000))
        self.renew_seconds = claim_seconds / 3
        self._renew, self._keep, self._release = map(redis.script, (_RENEW, _KEEP, _RELEASE))

    async def claim(self, key: str, holder: str) -> ClaimResult:
        name, claim, commands = self._prefix + key, _CLAIM + holder.encode(), self._redis.commands
        while True:
            if await self._within(commands.set(name, claim, nx=True, px=self._claim_milliseconds)):
                return "mine"
            found: bytes | None = await self._within(commands.get(name))
            if found == claim:  # the first reply got lost
                return "mine"
            if found is not None:
                return found.removeprefix(_RESULT) if found.startswith(_RESULT) else "theirs"

    async def renew(self, key: str, holder: str) -> bool:
        return bool(await self._run(self._renew, key, holder, self._claim_milliseconds))

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        return bool(await self._run(self._keep, key, holder, _RESULT + record, max(1, round(seconds * 1000))))

    async def release(self, key: str, holder: str) -> None:
        await self._run(self._release, key, holder)

    def _run(self, script: AsyncScript, key: str, holder: str, *arguments: bytes | int) -> Awaitable[Any]:
        claim = _CLAIM + holder.encode()
        return self._within(script(keys=[self._prefix + key], args=[claim, *arguments]))
