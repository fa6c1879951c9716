"""The server around the tools: handler, eras, layers, transports and the composition root.

An application needs little of it: `ServerSettings` for a container's `settings` role, `connect` for its tests,
`MountedApp` in an application of another framework, `ServerHost` and `make_app` where it brings its own process,
`make_handler` where it brings its own transport.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axolotl_server.call_providers import call_cancellation as call_cancellation
    from axolotl_server.call_providers import call_context as call_context
    from axolotl_server.call_providers import call_principal as call_principal
    from axolotl_server.client.client import Client as Client
    from axolotl_server.client.client import InProcessClient as InProcessClient
    from axolotl_server.client.connecting import connect as connect
    from axolotl_server.client.connecting import connect_process as connect_process
    from axolotl_server.client.connecting import connect_url as connect_url
    from axolotl_server.client.replies import RemoteError as RemoteError
    from axolotl_server.extension import Extension as Extension
    from axolotl_server.handler import DefaultHandler as DefaultHandler
    from axolotl_server.host import ServerHost as ServerHost
    from axolotl_server.host import make_handler as make_handler
    from axolotl_server.http.app import HttpApp as HttpApp
    from axolotl_server.http.assembly import make_app as make_app
    from axolotl_server.http.mounting import MountedApp as MountedApp
    from axolotl_server.http.mounting import starlette_user as starlette_user
    from axolotl_server.settings.section import Section as Section
    from axolotl_server.settings.server import ServerSettings as ServerSettings

_NAMES: Final = {
    "call_providers": ("call_cancellation", "call_context", "call_principal"),
    "client.client": ("Client", "InProcessClient"),
    "client.connecting": ("connect", "connect_process", "connect_url"),
    "client.replies": ("RemoteError",),
    "extension": ("Extension",),
    "handler": ("DefaultHandler",),
    "host": ("ServerHost", "make_handler"),
    "http.app": ("HttpApp",),
    "http.assembly": ("make_app",),
    "http.mounting": ("MountedApp", "starlette_user"),
    "settings.section": ("Section",),
    "settings.server": ("ServerSettings",),
}
"""The names that each module defines."""
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that a program loads only the parts it needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
