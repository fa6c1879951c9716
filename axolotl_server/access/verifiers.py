"""Assembly of the gate from the settings and the role token_verifier."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from axolotl_core.errors import ConfigurationError
from axolotl_core.policies.access import ITokenVerifier
from axolotl_server.access.api_keys import ApiKeyVerifier
from axolotl_server.access.fetcher import HttpFetcher
from axolotl_server.access.gate import (
    CLOCK_SKEW_SECONDS,
    MAX_CACHED_TOKENS,
    BearerGate,
    Challenges,
    OnRejected,
    TokenCache,
    metadata_url,
)
from axolotl_server.http.client_address import ClientAddresses
from axolotl_server.settings.authentication import AuthSettings

if TYPE_CHECKING:
    from axolotl_server.access.introspection import IntrospectionVerifier
    from axolotl_server.access.jwt_verifier import KeySet, LoadKeys

_KEYS_CACHE_SECONDS: Final = 3600.0
"""How long public keys are cached."""
_SIGNATURE_CACHE_SECONDS: Final = 300.0
_INTROSPECTION_CACHE_SECONDS: Final = 10.0


class MadeVerifier(NamedTuple):
    """A verifier of tokens, with the keys and connections that it uses."""

    verifier: ITokenVerifier | None
    cache_seconds: float = _SIGNATURE_CACHE_SECONDS
    """How long its answers are cached unless auth.token_cache_seconds is set."""
    key_sets: Sequence["KeySet"] = ()
    """The keys of the issuers, if they have to be loaded."""
    connections: "HttpFetcher | IntrospectionVerifier | None" = None
    depends_on_others: bool = False
    """Whether verification needs a service that cannot be tried without a token."""

    async def ping(self) -> None:
        """Check that the keys of all issuers can be loaded; raises Unavailable if not."""
        for keys in self.key_sets:
            await keys.ping()

    async def close(self) -> None:
        """Stop loading keys, and close all connections."""
        for one in (*self.key_sets, self.connections):
            if one is not None:
                await one.close()


def make_gate(
    settings: AuthSettings,
    given: ITokenVerifier | None,
    addresses: ClientAddresses | None = None,
    on_rejected: OnRejected | None = None,
) -> tuple[BearerGate, MadeVerifier]:
    """Make the gate and its verifier.

    Raises ConfigurationError if there is no verifier, if there are two, or if an extra is missing.
    """
    made = make_verifier(settings, given)
    verifier = ApiKeyVerifier(settings.api_keys, made.verifier) if settings.api_keys else made.verifier
    if verifier is None:
        raise ConfigurationError(
            "Nothing verifies tokens, although auth is configured: set auth.issuers, auth.introspection_url or "
            "auth.api_keys, or give the container the role token_verifier"
        )
    seconds = made.cache_seconds if settings.token_cache_seconds is None else settings.token_cache_seconds
    gate = BearerGate(
        verifier,
        TokenCache(MAX_CACHED_TOKENS, seconds, CLOCK_SKEW_SECONDS),
        Challenges(metadata_url(settings), settings.required_scopes),
        timeout_seconds=settings.timeout_seconds,
        required_scopes=settings.required_scopes,
        addresses=addresses,
        on_rejected=on_rejected,
    )
    return gate, made


def make_verifier(settings: AuthSettings, given: ITokenVerifier | None = None) -> MadeVerifier:
    """Make the verifier of tokens, if the settings or the container have one; raises ConfigurationError for two."""
    if given is not None:
        if settings.issuers or settings.introspection_url:
            raise ConfigurationError(
                "There are two verifiers: the container's role token_verifier, and auth.issuers or "
                "auth.introspection_url in the settings; keep one"
            )
        return MadeVerifier(given, cache_seconds=0.0, depends_on_others=True)
    try:
        if settings.introspection_url is not None:
            from axolotl_server.access.introspection import MAX_RUNNING, IntrospectionVerifier

            fetcher = HttpFetcher(settings.timeout_seconds, max_connections=MAX_RUNNING)
            asking = IntrospectionVerifier(settings, fetcher)
            return MadeVerifier(asking, _INTROSPECTION_CACHE_SECONDS, connections=asking, depends_on_others=True)
        if settings.issuers:
            return _signatures(settings)
    except ImportError as error:
        if error.name != "jwt":
            raise
        raise ConfigurationError.missing_extra("Setting auth.issuers", "auth") from None
    return MadeVerifier(None)


def _signatures(settings: AuthSettings) -> MadeVerifier:
    from axolotl_server.access.jwt_verifier import JwtVerifier, KeySet, discover_keys, keys_in_file, shared_secret

    if settings.hmac_secret is not None:
        secret = shared_secret(settings.hmac_secret.get_secret_value().encode())
        return MadeVerifier(JwtVerifier(settings, {settings.issuers[0]: secret}))
    fetcher, jwks = HttpFetcher(settings.timeout_seconds), settings.jwks
    key_sets = {}
    for issuer in settings.issuers:
        if jwks is None:
            load: LoadKeys = partial(discover_keys, fetcher, issuer)
        else:
            load = partial(fetcher.get, jwks) if "://" in jwks else keys_in_file(Path(jwks))
        key_sets[issuer] = KeySet(load, _KEYS_CACHE_SECONDS, settings.jwks_refresh_seconds)
    finders = {issuer: keys.find for issuer, keys in key_sets.items()}
    return MadeVerifier(JwtVerifier(settings, finders), key_sets=(*key_sets.values(),), connections=fetcher)
