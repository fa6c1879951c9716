"""TLS as the settings have it."""

import ssl
from pathlib import Path

from axolotl_core.errors import ConfigurationError
from axolotl_server.settings import HttpSettings

__all__ = ["tls_context"]


def tls_context(settings: HttpSettings) -> ssl.SSLContext | None:
    """Load certificates and keys; None where there is no TLS.

    Raises:
        ConfigurationError: if one of them cannot be used.
    """
    if settings.tls_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secret = settings.tls_key_password
    # A text, since without one OpenSSL would ask at the terminal.
    password = "" if secret is None else secret.get_secret_value()
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, lambda: password)
    except (OSError, ValueError) as error:
        raise _unusable("tls_certificate and tls_key", settings.tls_certificate, error) from None
    if settings.tls_client_ca is not None:
        try:
            context.load_verify_locations(settings.tls_client_ca)
        except (OSError, ValueError) as error:
            raise _unusable("tls_client_ca", settings.tls_client_ca, error) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _unusable(setting: str, path: Path, error: Exception) -> ConfigurationError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return ConfigurationError(f"Setting http.{setting}: {path} cannot be used: {reason}")
