"""Who sends a request: the port that makes a principal of a bearer token."""

from abc import ABC, abstractmethod

from axolotl_core.protocol.identity import Principal

__all__ = ["ITokenVerifier"]


class ITokenVerifier(ABC):
    """Finds out on whose behalf a request is made, from the token that came with it.

    It is asked before the body of a request is read, for every request whose token it has not accepted lately. It may
    wait, but not for long. Whatever else it raises, and any answer that comes too late, means that nobody can tell
    now: the request is refused, and its sender is told to try again. A principal whose `claims` have `exp` or `nbf` is
    not remembered outside of these times. The token itself belongs into neither the principal nor a log.
    """

    @abstractmethod
    async def verify(self, token: str) -> Principal:
        """Give the principal.

        Raises:
            InvalidToken: if the token is not meant for this server, or proves nothing.
        """
