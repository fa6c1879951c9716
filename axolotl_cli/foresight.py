"""The settings that a server will have, without starting it."""

from axolotl_cli.running import run
from axolotl_cli.streams import reserved_output
from axolotl_cli.targets import Choice
from axolotl_server.configuration import weigh
from axolotl_server.loading import load_container
from axolotl_server.roles import resolve_settings
from axolotl_server.settings import ServerSettings

__all__ = ["settings_ahead"]


def settings_ahead(choice: Choice) -> ServerSettings:
    """Import the target, and ask it and all other sources for settings; no resource is started.

    Raises:
        ConfigurationError: if the target names no container, or the settings are wrong.
    """
    with reserved_output():
        return run(_settings(choice))


async def _settings(choice: Choice) -> ServerSettings:
    said = await resolve_settings(load_container(choice.target))
    return weigh(flags=choice.flags, file=choice.file, container=said).settings
