"""What a request without the right token is answered with, and how its sender gets one."""

from collections.abc import Iterable, Mapping
from typing import Final

from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import Headers

__all__ = ["Challenges"]

_RETRY_AFTER_SECONDS: Final = b"1"


class Challenges:
    """Makes the refusals of a gate, each with a `WWW-Authenticate` header that a client can act on."""

    def __init__(self, metadata_url: str | None, required_scopes: Iterable[str]) -> None:
        """Say where the metadata is, None where there is none, and what every token must be good for."""
        self._metadata_url = metadata_url
        self._required = tuple(required_scopes)

    def no_token(self) -> HttpRefusal:
        """Ask for a token; there is no error in a request of someone who could not know."""
        text = "Unauthorized: send Authorization: Bearer with a token for this server"
        return HttpRefusal(401, text, headers=self._header({}, self._required))

    def invalid_token(self, reason: str) -> HttpRefusal:
        """Refuse a token."""
        said = {"error": "invalid_token", "error_description": reason}
        return HttpRefusal(401, f"Unauthorized: {reason}", headers=self._header(said, self._required))

    def malformed(self) -> HttpRefusal:
        """Refuse a header that cannot be read in one way only."""
        reason = "send one Authorization header, with Bearer and one token"
        said = {"error": "invalid_request", "error_description": reason}
        return HttpRefusal(400, f"Bad request: {reason}", headers=self._header(said, self._required))

    def insufficient_scope(self, scopes: Iterable[str] = ()) -> HttpRefusal:
        """Refuse a token that is good, but not for this; name all that it must be good for."""
        needed = tuple(dict.fromkeys((*self._required, *sorted(scopes))))
        reason = f"the token must have the scopes {' '.join(needed)}"
        said = {"error": "insufficient_scope", "error_description": reason}
        return HttpRefusal(403, f"Forbidden: {reason}", headers=self._header(said, needed))

    def unavailable(self) -> HttpRefusal:
        """Send a request away that cannot be judged now."""
        text = "Service unavailable: nobody can tell now whose token this is; try again"
        return HttpRefusal(503, text, headers=[(b"retry-after", _RETRY_AFTER_SECONDS)])

    def _header(self, said: Mapping[str, str], scopes: Iterable[str]) -> Headers:
        parameters = dict(said)
        if self._metadata_url is not None:
            parameters["resource_metadata"] = self._metadata_url
        if wanted := " ".join(scopes):
            parameters["scope"] = wanted
        listed = ", ".join(f'{name}="{_quotable(value)}"' for name, value in parameters.items())
        return [(b"www-authenticate", f"Bearer {listed}".rstrip().encode("ascii"))]


def _quotable(text: str) -> str:
    """Leave out of a quoted string what would end it, or what no header can hold."""
    return "".join(letter if " " <= letter <= "~" and letter not in '"\\' else "?" for letter in text)
