"""Results in Redis, so that no two replicas of a server do the same work."""

from collections.abc import Awaitable
from typing import Any, Final

from axolotl_core.policies.tool_rules import Claim, IResultStore, ResultStoreError
from axolotl_server.stores.redis_client import RedisClient, RedisUnavailable

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
    """Keeps claims and results where all replicas look; needs the extra `redis`.

    A claim ends by itself when it is not renewed in time, so that the work of a replica that died can be done by
    another one. Results are forgotten when their time is over; Redis must not be set up to forget them earlier.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "axolotl:result:",
        claim_seconds: float = 10.0,
        timeout_seconds: float = 1.0,
        max_connections: int = 20,
    ) -> None:
        """Say which Redis; it is connected to when it is first needed.

        Raises:
            ConfigurationError: if the URL is none of a Redis.
        """
        self._prefix = prefix
        self._claim_milliseconds = max(1, round(claim_seconds * 1000))
        self.renew_seconds = claim_seconds / 3
        self._redis = RedisClient(
            url, "idempotency.redis_url", timeout_seconds=timeout_seconds, max_connections=max_connections
        )

    async def claim(self, key: str, holder: str) -> Claim:
        """Take the key if nobody has it, else look who has, or what is there."""
        name, claim = self._prefix + key, _CLAIM + holder.encode()
        while True:
            if await self._asked(self._redis.commands.set(name, claim, nx=True, px=self._claim_milliseconds)):
                return "mine"
            found: bytes | None = await self._asked(self._redis.commands.get(name))
            if found == claim:  # the first answer got lost
                return "mine"
            if found is not None:
                return found.removeprefix(_RESULT) if found.startswith(_RESULT) else "theirs"

    async def renew(self, key: str, holder: str) -> bool:
        """Put off the end of a claim."""
        return bool(await self._run(_RENEW, key, holder, self._claim_milliseconds))

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        """Put the result where the claim is, or was."""
        return bool(await self._run(_KEEP, key, holder, _RESULT + record, max(1, round(seconds * 1000))))

    async def release(self, key: str, holder: str) -> None:
        """Take the claim away if it is still this one."""
        await self._run(_RELEASE, key, holder)

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.close()

    def _run(self, script: str, key: str, holder: str, *arguments: Any) -> Awaitable[Any]:
        name, claim = self._prefix + key, _CLAIM + holder.encode()
        return self._asked(self._redis.commands.eval(script, 1, name, claim, *arguments))

    async def _asked(self, question: Awaitable[Any]) -> Any:
        try:
            return await self._redis.ask(question)
        except RedisUnavailable as error:
            raise ResultStoreError(str(error)) from error
