"""The address that the settings give a server, for those who ask it."""

from pathlib import Path

from axolotl_cli.listening import address_of
from axolotl_cli.targets import choose
from axolotl_core.errors import ConfigurationError

__all__ = ["health_address"]


def health_address(env_file: Path | None) -> str:
    """Give the URL of the route that tells whether the server is ready.

    The container is not asked, which may have settings of its own: that would start half a server.

    Raises:
        ConfigurationError: if the settings are wrong, or give no such URL.
    """
    settings = choose(None, env_file=env_file).settings
    if settings.http.port == 0:
        raise ConfigurationError("http.port is 0, which takes any port: say with --url which server to ask")
    if settings.health.ready_path not in settings.health.paths:
        raise ConfigurationError("health.ready_path is switched off: say with --url which route to ask")
    return address_of(settings.http, settings.http.port) + settings.health.ready_path
