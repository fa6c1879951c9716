"""From what a token says to the principal that tools, policy and audit know."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from axolotl_core.errors import InvalidToken
from axolotl_core.protocol.identity import Principal
from axolotl_server.settings.authentication import AuthSettings
from axolotl_server.urls import canonical

_LONGEST_NAME: Final = 1000
_MOST_WORDS: Final = 1000


class ClaimReader:
    """Reads the claims that the settings name."""

    def __init__(self, settings: AuthSettings) -> None:
        self._settings = settings
        self._audiences = frozenset(map(canonical, settings.accepted_audiences))

    def check_audience(self, claims: Mapping[str, Any]) -> None:
        """Make sure that a token was issued for this server.

        Raises:
            InvalidToken: if it was issued for others, or does not say.
        """
        said = claims.get("aud")
        named = [said] if isinstance(said, str) else said
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            raise InvalidToken("the token does not say which server it is for")
        if self._audiences.isdisjoint(map(canonical, named)):
            raise InvalidToken("the token is for another server")

    def principal(self, claims: Mapping[str, Any], issuer: str) -> Principal:
        """Make the principal.

        Raises:
            InvalidToken: if nobody is named, or something is no text that should be.
        """
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
    if not isinstance(value, str) or len(value) > _LONGEST_NAME or not value.isprintable():
        raise InvalidToken(f"the {name} of the token is no name")
    return value


def _words(claims: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    """Join what several claims list, each as words in a text or as a list."""
    words: set[str] = set()
    for name in names:
        value = _claim(claims, name)
        listed = value.split(" ") if isinstance(value, str) else value
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(map(_is_word, listed)):
            raise InvalidToken(f"the {name} of the token is no list of words")
        words.update(filter(None, listed))
    if len(words) > _MOST_WORDS:
        raise InvalidToken("the token lists too many scopes or roles")
    return frozenset(words)


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and len(word) <= _LONGEST_NAME and word.isprintable()


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Find a claim by its name, else by the path that its name is."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
