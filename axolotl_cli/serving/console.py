"""The console of a server that the command line serves."""

from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import SecretStr

from axolotl_server.host import ServerHost
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.extensions.console.console import Console


def console_of(host: ServerHost) -> "Console | None":
    """Return the console of a server, if it is enabled."""
    if not host.settings.console.enabled:
        return None
    from axolotl_server.extensions.console.console import Console  # few servers have one

    return host.extension(Console)


def with_console_token(settings: ServerSettings, key: str) -> ServerSettings:
    """Give the consoles of all workers the same token, made from a key that the workers share."""
    console = settings.console
    if not console.enabled or console.token is not None:
        return settings
    token = SecretStr(sha256(f"axolotl console {key}".encode()).hexdigest()[:32])
    return settings.model_copy(update={"console": console.model_copy(update={"token": token})})
