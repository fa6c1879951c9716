"""Keys that an operator gave out, and of which the server knows only the digests."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.authentication import ApiKeySettings


class ApiKeyVerifier(ITokenVerifier):
    """Knows keys by their digests; what is no key is left to another verifier, if there is one."""

    def __init__(self, keys: Mapping[str, ApiKeySettings], otherwise: ITokenVerifier | None = None) -> None:
        self._keys = [(key.hash.encode("ascii"), key.principal(name)) for name, key in keys.items()]
        self._otherwise = otherwise

    async def verify(self, token: str) -> Principal:
        """Compare the token with every key, in a time that does not tell which of them is like it."""
        digest = hash_key(token).encode("ascii")
        found: Principal | None = None
        for known, principal in self._keys:
            if compare_digest(known, digest):
                found = principal
        if found is not None:
            return found
        if self._otherwise is None:
            raise InvalidToken("there is no such key")
        return await self._otherwise.verify(token)


def hash_key(key: str) -> str:
    """Give what the settings say of a key; it has too many bits to be guessed, so one round is enough."""
    return f"sha256:{sha256(key.encode('utf-8')).hexdigest()}"
