"""Who can reach a server, and whether anything stands between them and its tools."""

from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.http.tls import tls_context
from axolotl_server.identity.urls import is_loopback

__all__ = ["check_exposure", "is_authenticated", "prepare"]


def is_authenticated(host: ServerHost) -> bool:
    """Tell whether requests need a token."""
    return host.settings.auth.is_used or host.roles.token_verifier is not None


def prepare(host: ServerHost) -> None:
    """Make sure that a server can be served at the address it is set to, before that is promised to anybody.

    Raises:
        ConfigurationError: if it would be open to strangers, or if its certificate or what verifies tokens is wrong.
    """
    check_exposure(host, host.settings.http.host)
    tls_context(host.settings.http)
    if is_authenticated(host):
        from axolotl_server.identity.composition import make_gate

        make_gate(host.settings.auth, host.roles.token_verifier)


def check_exposure(host: ServerHost, address: str) -> None:
    """Refuse to serve strangers who need to prove nothing.

    Raises:
        ConfigurationError: if others than this machine can reach the address, and that was not said to be all right.
    """
    http = host.settings.http
    if is_loopback(address) or is_authenticated(host) or http.tls_client_ca is not None or http.allow_unauthenticated:
        return
    raise ConfigurationError(
        f"Everybody who can reach {address or 'this machine'} could use this server: set up auth (issuers, "
        "introspection_url or api_keys), or http.tls_client_ca, or listen at 127.0.0.1; if something in front of it "
        "asks who they are, say http.allow_unauthenticated = true"
    )
