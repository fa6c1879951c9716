"""Conversion of a token's claims into the principal of a request."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeGuard

from axolotl_core.errors import InvalidToken
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.urls import canonical

_MAX_CHARACTERS: Final = 1000
_MAX_WORDS: Final = 1000
_ACCESS_TOKEN_TYPES: Final = frozenset({"at+jwt", "application/at+jwt"})
_PLAIN_TYPES: Final = frozenset({"jwt", "application/jwt"})
_ACCESS_TOKEN_USES: Final = frozenset({"access", "bearer"})
"""Values of `typ` and `token_use` in the claims of access tokens, of Keycloak and Cognito."""
_OTHER_TOKEN_USES: Final = frozenset({"id", "refresh", "offline", "logout"})
"""The same for tokens that are not access tokens."""
_ID_TOKEN_CLAIMS: Final = frozenset({"at_hash", "c_hash"})


def _check_kind(claims: Mapping[str, Any], kind: Any = None) -> None:
    """Check that a token of a type is an access token that anyone may use who has it; raises InvalidToken if not.

    An access token has the type `at+jwt` (RFC 9068). Many issuers send `JWT` or nothing; then the claims must not be
    those of an ID token, a refresh token or a logout token. The older ones of Keycloak put a `nonce` into all tokens.
    """
    if claims.get("cnf") is not None:
        raise InvalidToken("the token is bound to a key (cnf), which this server cannot check: send one without cnf")
    if isinstance(kind, str) and kind.lower() in _ACCESS_TOKEN_TYPES:
        return
    if kind is not None and not (isinstance(kind, str) and kind.lower() in _PLAIN_TYPES):
        raise InvalidToken("the type of the token is not that of an access token")
    uses = {str(claims.get(name)).lower() for name in ("typ", "token_use")}
    is_id_token = "nonce" in claims and uses.isdisjoint(_ACCESS_TOKEN_USES)
    if is_id_token or not uses.isdisjoint(_OTHER_TOKEN_USES) or not _ID_TOKEN_CLAIMS.isdisjoint(claims):
        raise InvalidToken("the token is an ID token or a refresh token: send an access token")
    if "events" in claims:
        raise InvalidToken("the token is a logout token or another report of events: send an access token")


class ClaimReader:
    """Reads the claims that are named in the settings."""

    def __init__(self, settings: AuthSettings) -> None:
        self._settings = settings
        self._audiences = frozenset(map(canonical, settings.accepted_audiences))

    def accept(self, claims: Mapping[str, Any], issuer: str, kind: Any = None) -> Principal:
        """Return the principal of a token.

        Raises InvalidToken if it is no access token, has no audience or is for another server, if there is no subject,
        or if a claim has the wrong type.
        """
        _check_kind(claims, kind)
        claim = claims.get("aud")
        audiences = [claim] if isinstance(claim, str) else claim
        if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
            raise InvalidToken("the token does not say which server it is for")
        if self._audiences.isdisjoint(map(canonical, audiences)):
            raise InvalidToken("the token is for another server")
        settings = self._settings
        subject = _text(claims, settings.subject_claim)
        if not subject:
            raise InvalidToken(f"the token has no {settings.subject_claim}")
        tenant = None if settings.tenant_claim is None else _text(claims, settings.tenant_claim)
        scopes, roles = _words(claims, settings.scope_claims), _words(claims, settings.role_claims)
        return Principal(subject, tenant, scopes, roles, dict(claims), issuer)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = _claim(claims, name)
    if value is None or _is_word(value):
        return value
    raise InvalidToken(f"the {name} of the token is not a valid name")


def _words(claims: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    """Join the words of several claims, each a list or a text with spaces."""
    words: set[str] = set()
    for name in names:
        value = _claim(claims, name)
        listed = value.split(" ") if isinstance(value, str) else value
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(map(_is_word, listed)):
            raise InvalidToken(f"the {name} of the token is not a list of words")
        words.update(filter(None, listed))
    if len(words) > _MAX_WORDS:
        raise InvalidToken("the token lists too many scopes or roles")
    return frozenset(words)


def _is_word(word: Any) -> TypeGuard[str]:
    return isinstance(word, str) and len(word) <= _MAX_CHARACTERS and word.isprintable()


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Find a claim by its name, or by its name as a path with dots.

    A name with a dot is one or the other, never both: where users choose the names of claims, a claim
    `realm_access.roles` must not replace the one in `realm_access`.
    """
    if "." not in name or not {"/", ":"}.isdisjoint(name):
        return claims.get(name)
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
