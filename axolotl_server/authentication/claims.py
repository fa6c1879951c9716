"""Conversion of a token's claims into the principal of a request."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from axolotl_core.errors import InvalidToken
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.urls import canonical

_MAX_CHARACTERS: Final = 1000
_MAX_WORDS: Final = 1000


class ClaimReader:
    """Reads the claims that are named in the settings."""

    def __init__(self, settings: AuthSettings) -> None:
        self._settings = settings
        self._audiences = frozenset(map(canonical, settings.accepted_audiences))

    def check_audience(self, claims: Mapping[str, Any]) -> None:
        """Check that a token was issued for this server; raises InvalidToken if not, or if it has no audience."""
        claim = claims.get("aud")
        audiences = [claim] if isinstance(claim, str) else claim
        if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
            raise InvalidToken("the token does not say which server it is for")
        if self._audiences.isdisjoint(map(canonical, audiences)):
            raise InvalidToken("the token is for another server")

    def principal(self, claims: Mapping[str, Any], issuer: str) -> Principal:
        """Make the principal; raises InvalidToken if there is no subject, or if a claim has the wrong type."""
        settings = self._settings
        subject = _text(claims, settings.subject_claim)
        if not subject:
            raise InvalidToken(f"the token has no {settings.subject_claim}")
        tenant = None if settings.tenant_claim is None else _text(claims, settings.tenant_claim)
        scopes, roles = _words(claims, settings.scope_claims), _words(claims, settings.role_claims)
        return Principal(subject, tenant, scopes, roles, dict(claims), issuer)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = _claim(claims, name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _MAX_CHARACTERS or not value.isprintable():
        raise InvalidToken(f"the {name} of the token is not a valid name")
    return value


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


def _is_word(word: Any) -> bool:
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
