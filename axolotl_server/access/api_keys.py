"""API keys, of which the server knows only the digests."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.authentication import ApiKeySettings


class ApiKeyVerifier(ITokenVerifier):
    """Accepts known API keys and passes every other token to a second verifier, if there is one."""

    def __init__(self, keys: Mapping[str, ApiKeySettings], fallback: ITokenVerifier | None = None) -> None:
        self._keys = [(key.hash.encode("ascii"), key.principal(name)) for name, key in keys.items()]
        self._fallback = fallback

    async def verify(self, token: str) -> Principal:
        """Compare the token with every key, so that the time taken does not reveal which one is similar."""
        digest = hash_key(token).encode("ascii")
        found: Principal | None = None
        for known, principal in self._keys:
            if compare_digest(known, digest):
                found = principal
        if found is not None:
            return found
        if self._fallback is None:
            raise InvalidToken("there is no such API key")
        return await self._fallback.verify(token)


def hash_key(key: str) -> str:
    """Return the digest for the settings; keys are too random to be guessed, so one round is enough."""
    return f"sha256:{sha256(key.encode('utf-8')).hexdigest()}"
