"""The gate in front of the MCP endpoint: bearer tokens, their cache, challenges and metadata."""

import logging
import re
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from hashlib import blake2b
from math import inf, isfinite
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import encode
from axolotl_server.access.fetcher import Unavailable
from axolotl_server.execution.time_limit import CodeExited, NoAnswer, answer_within
from axolotl_server.http.asgi import (
    Headers,
    HttpRefusal,
    Receive,
    Route,
    Scope,
    Send,
    send_empty,
    send_json,
)
from axolotl_server.http.client_address import ClientAddresses
from axolotl_server.protocol.flow_control import TokenBucket
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.settings.server import ServerSettings
from axolotl_server.urls import canonical

CLOCK_SKEW_SECONDS: Final = 30.0
"""How much the clocks of the issuer and this machine may differ."""
MAX_CACHED_TOKENS: Final = 10_000
"""How many verified tokens are cached. Their expiry is checked with every request."""
_MAX_HEADER_BYTES: Final = 16 * 1024
_BEARER: Final = re.compile(rb"bearer(?: +(?P<token>[A-Za-z0-9._~+/-]+=*)?)?", re.IGNORECASE)
_SCHEME: Final = re.compile(rb"(?P<scheme>[!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: .*)?", re.DOTALL)


token_sender: Final[ContextVar[str]] = ContextVar("axolotl_token_sender", default="")
"""The address that sent the token that is being verified; empty if it is unknown."""


class MalformedCredentials(Exception):
    """The Authorization header is malformed, or contains more than one token."""


def bearer_token(header: bytes) -> str | None:
    """Read the token in an Authorization header; None if it has another scheme or no token.

    Raises MalformedCredentials if the header is ambiguous.
    """
    bearer = _BEARER.fullmatch(header)
    if bearer is not None:
        token: bytes | None = bearer["token"]
        return None if token is None else token.decode("ascii")
    scheme = _SCHEME.fullmatch(header)
    if scheme is None or scheme["scheme"].lower() == b"bearer":
        raise MalformedCredentials
    return None


class _AcceptedToken(NamedTuple):
    principal: Principal
    not_before: float
    expires: float
    """On the wall clock, like not_before, with the allowed skew."""
    cached_until: float
    """On the monotonic clock."""


def _digest(credentials: bytes) -> bytes:
    return blake2b(credentials).digest()


class TokenCache:
    """Remembers the tokens used last, by their digests."""

    def __init__(
        self,
        size: int,
        seconds: float,
        skew_seconds: float,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size: Final = size if seconds > 0 else 0
        self._seconds = seconds
        self._skew_seconds = skew_seconds
        self._now = now
        self._monotonic = monotonic
        self._accepted: OrderedDict[bytes, _AcceptedToken] = OrderedDict()

    def __len__(self) -> int:
        return len(self._accepted)

    def get(self, digest: bytes) -> Principal | None:
        """Return the principal of a token that was accepted, is valid already and has not expired."""
        accepted = self._accepted
        found = accepted.get(digest)
        if found is None:
            return None
        principal, not_before, expires, cached_until = found
        if not_before <= self._now() < expires and self._monotonic() < cached_until:
            accepted.move_to_end(digest)
            return principal
        del accepted[digest]
        return None

    def put(self, digest: bytes, principal: Principal) -> None:
        """Remember a token, at most until it expires."""
        if not self._size:
            return
        starts, ends = _time(principal.claims.get("nbf"), -inf), _time(principal.claims.get("exp"), inf)
        self._accepted[digest] = _AcceptedToken(
            principal, starts - self._skew_seconds, ends + self._skew_seconds, self._monotonic() + self._seconds
        )
        self._accepted.move_to_end(digest)
        if len(self._accepted) > self._size:
            self._accepted.popitem(last=False)


def _time(claim: Any, default: float) -> float:
    """Read a time; an invalid one puts the token outside its lifetime, so that it is verified each time."""
    if claim is None:
        return default
    try:
        time_claimed = float(claim)
    except (TypeError, ValueError, OverflowError):
        return -default
    return time_claimed if isfinite(time_claimed) else -default


class Challenges:
    """Makes refusals with a `WWW-Authenticate` header that clients can act on."""

    def __init__(self, metadata_url: str | None, required_scopes: Iterable[str]) -> None:
        """Take the URL of the metadata, if there is any, and the scopes that every token needs."""
        self._metadata_url = metadata_url
        self._required = tuple(required_scopes)

    def no_token(self) -> HttpRefusal:
        """Ask for a token; a request without one has no `error` in its challenge."""
        text = "Unauthorized: send the header Authorization: Bearer with a token for this server"
        return self._refuse(401, text, "", "", self._required)

    def invalid_token(self, reason: str) -> HttpRefusal:
        """Refuse a token."""
        return self._refuse(401, f"Unauthorized: {reason}", "invalid_token", reason, self._required)

    def malformed(self) -> HttpRefusal:
        """Refuse an ambiguous header."""
        reason = "send one Authorization header, with Bearer and one token"
        return self._refuse(400, f"Bad request: {reason}", "invalid_request", reason, self._required)

    def insufficient_scope(self, scopes: Iterable[str] = ()) -> HttpRefusal:
        """Refuse a valid token that lacks scopes; the challenge names all scopes that are needed."""
        needed = tuple(dict.fromkeys((*self._required, *sorted(scopes))))
        reason = f"the token must have the scopes {' '.join(needed)}"
        return self._refuse(403, f"Forbidden: {reason}", "insufficient_scope", reason, needed)

    def unavailable(self) -> HttpRefusal:
        """Refuse a request whose token cannot be verified now."""
        text = "Service unavailable: the token cannot be verified now; try again"
        return HttpRefusal(503, text, headers=[(b"retry-after", b"1")])

    def _refuse(self, status: int, text: str, error: str, reason: str, scopes: Iterable[str]) -> HttpRefusal:
        parameters = {
            "error": error,
            "error_description": reason,
            "resource_metadata": self._metadata_url or "",
            "scope": " ".join(scopes),
        }
        listed = ", ".join(f'{name}="{_quotable(value)}"' for name, value in parameters.items() if value)
        header = f"Bearer {listed}".rstrip().encode("ascii")
        return HttpRefusal(status, text, headers=[(b"www-authenticate", header)])


def _quotable(text: str) -> str:
    """Replace the characters that would end a quoted string, or that a header cannot contain."""
    return "".join(letter if " " <= letter <= "~" and letter not in '"\\' else "?" for letter in text)


_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_ANY_ORIGIN: Final[Headers] = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: Final[Headers] = [
    *_ANY_ORIGIN,
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"MCP-Protocol-Version, Accept"),
    (b"access-control-max-age", b"3600"),
]


def metadata_url(settings: AuthSettings) -> str | None:
    """Return the URL of the metadata; None if no resource or no authorization server is set."""
    if settings.resource is None or not settings.servers:
        return None
    parts = urlsplit(canonical(settings.resource))
    return f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{parts.path.rstrip('/')}"


def metadata_routes(settings: ServerSettings) -> dict[str, Route]:
    """Serve the metadata at the well-known path, alone and followed by the path of the resource.

    Everybody may read it: clients do so before they have a token.
    """
    auth = settings.auth
    if auth.resource is None or not auth.servers:
        return {}
    resource = canonical(auth.resource)
    metadata = {
        "resource": resource,
        "authorization_servers": auth.servers,
        "bearer_methods_supported": ["header"],
        "resource_name": settings.server.title or settings.server.name,
        **({"scopes_supported": auth.required_scopes} if auth.required_scopes else {}),
    }
    document = encode(metadata)

    async def serve(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await send_empty(send, 204, _PREFLIGHT)
        elif scope["method"] == "GET":
            await send_json(send, 200, document, [*_ANY_ORIGIN, (b"cache-control", b"max-age=300")])
        else:
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET")])

    route = Route(serve, is_open=True)
    paths = {urlsplit(resource).path.rstrip("/"), settings.http.path.rstrip("/"), ""}
    return {f"{_WELL_KNOWN}{path}": route for path in paths}


_REFUSALS_LOGGED_PER_SECOND: Final = 10.0
_FAILURES_LOGGED_PER_SECOND: Final = 5.0
_FAILURE_REMEMBERED_SECONDS: Final = 30.0

_log = logging.getLogger("axolotl")

OnRejected: TypeAlias = Callable[[str | None, str, str | None], object]
"""Takes the address of a client whose token was rejected, the reason, and the subject of a valid token."""


class BearerGate:
    """Admits requests with a valid token; a token that was accepted recently is known by its digest.

    A verifier that fails or hangs admits nobody.
    """

    def __init__(
        self,
        verifier: ITokenVerifier,
        cache: TokenCache,
        challenges: Challenges,
        *,
        timeout_seconds: float,
        required_scopes: Iterable[str] = (),
        addresses: ClientAddresses | None = None,
        on_rejected: OnRejected | None = None,
    ) -> None:
        self._verifier = verifier
        self._cache = cache
        self._challenges = challenges
        self._timeout_seconds = timeout_seconds
        self._required_scopes = frozenset(required_scopes)
        self._addresses = addresses or ClientAddresses()
        self._on_rejected = on_rejected
        self._refusal_log_limit = TokenBucket(_REFUSALS_LOGGED_PER_SECOND)
        self._failure_log_limit = TokenBucket(_FAILURES_LOGGED_PER_SECOND)
        self._failed_at: float | None = None
        """When the verifier failed, if it has not answered since."""

    @property
    def has_failed(self) -> bool:
        """Whether the verifier failed in the last moments and has not answered since."""
        return self._failed_at is not None and time.monotonic() - self._failed_at < _FAILURE_REMEMBERED_SECONDS

    async def admit(
        self, credentials: bytes | None, client: Sequence[Any] | None, headers: Mapping[bytes, bytes]
    ) -> Principal:
        """Return the principal of an Authorization header; refuse with a challenge, or 503 if the verifier fails."""
        if credentials is None:
            raise self._challenges.no_token()
        if len(credentials) > _MAX_HEADER_BYTES:
            reason, address = "the token is too long", self._addresses.find(client, headers)
            raise self._reject(self._challenges.invalid_token(reason), reason, address)
        known = self._cache.get(_digest(credentials))
        if known is not None:
            return known
        return await self._verify(credentials, self._addresses.find(client, headers))

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal:
        """Make the refusal of a request whose token lacks scopes."""
        return self._challenges.insufficient_scope(scopes)

    async def _verify(self, credentials: bytes, address: str | None) -> Principal:
        try:
            token = bearer_token(credentials)
        except MalformedCredentials:
            raise self._reject(self._challenges.malformed(), "the Authorization header is malformed", address) from None
        if token is None:
            raise self._challenges.no_token()
        plain = b"Bearer " + token.encode("ascii")
        digest = _digest(plain)
        known = None if plain == credentials else self._cache.get(digest)  # spaces and case do not make another token
        if known is not None:
            return known
        token_sender.set(address or "")
        try:
            principal = await answer_within(self._timeout_seconds, lambda: self._verifier.verify(token))
        except InvalidToken as error:
            self._failed_at = None
            raise self._reject(self._challenges.invalid_token(error.reason), error.reason, address) from None
        except Exception as error:
            raise self._unavailable(_describe(error)) from None
        self._failed_at = None
        if not isinstance(principal, Principal):
            raise self._unavailable(f"the verifier returned {type(principal).__name__}, which is not a Principal")
        if not self._required_scopes.issubset(principal.scopes):
            missing = " ".join(sorted(self._required_scopes - principal.scopes))
            refusal = self._challenges.insufficient_scope()
            raise self._reject(refusal, f"the token lacks the scopes {missing}", address, principal.subject)
        self._cache.put(digest, principal)
        return principal

    def _reject(
        self, refusal: HttpRefusal, reason: str, address: str | None, subject: str | None = None
    ) -> HttpRefusal:
        """Log and record that a token was rejected; return the refusal."""
        if self._refusal_log_limit.take():
            _log.info("a token from %s was rejected: %s", address or "an unknown address", reason)
        if self._on_rejected is not None:
            self._on_rejected(address, reason, subject)
        return refusal

    def _unavailable(self, reason: str) -> HttpRefusal:
        self._failed_at = time.monotonic()
        if self._failure_log_limit.take():
            _log.error("a token could not be verified: %s", reason)
        return self._challenges.unavailable()


def _describe(error: Exception) -> str:
    """Describe a failure without the text of errors that are not ours, which may contain the token."""
    if isinstance(error, Unavailable | NoAnswer):
        return str(error)
    raised = error.__cause__ if isinstance(error, CodeExited) and error.__cause__ is not None else error
    frames = traceback.extract_tb(raised.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(raised).__name__}{place}"
