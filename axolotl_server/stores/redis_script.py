"""A script that Redis runs, sent as a whole only where Redis does not have it yet."""

from collections.abc import Sequence
from hashlib import blake2b, sha1
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

__all__ = ["RedisScript", "hidden"]


class RedisScript:
    """Does several things in one step, in which nothing can come between."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, commands: Redis, keys: Sequence[str], *arguments: str | bytes | int) -> Any:
        """Run it; what Redis answers is given as it is."""
        try:
            return await commands.evalsha(self._digest, len(keys), *keys, *arguments)
        except NoScriptError:
            return await commands.eval(self._text, len(keys), *keys, *arguments)


def hidden(name: str) -> str:
    """Give a name for Redis from which the id of a session, which opens it to its bearer, cannot be read."""
    return blake2b(name.encode(), digest_size=16).hexdigest()
