"""A server of several processes that share no sessions."""

from axolotl_core.errors import InternalError
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.session import Session
from axolotl_server.http.sessions import Sessions

__all__ = ["NO_SESSIONS", "Sessionless"]

NO_SESSIONS = (
    "This server keeps no sessions, because it has several workers that share none: set sessions.redis_url, or serve "
    "with one worker; clients of a revision without a handshake need no session"
)


class Sessionless(Sessions):
    """Refuses the handshake: the next request would reach a process that knows nothing of it.

    That is an error of the protocol with an ordinary HTTP status, as clients show its message then. A session that
    ended, which 404 means, would be begun anew for ever.
    """

    def begin(self, principal: Principal) -> Session:
        """Say what to set.

        Raises:
            InternalError: always.
        """
        raise InternalError(NO_SESSIONS)
