"""The server around the tools: handler, eras, layers, transports and the composition root.

An application needs little of it: `ServerSettings` for a container's `settings` role, `connect` for its tests,
`ServerHost` and `HttpApp` where it brings its own process.
"""

from axolotl_server.client import CallOutcome, InProcessClient, RemoteError, connect
from axolotl_server.handler import DefaultHandler
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.settings import ServerSettings

__all__ = [
    "CallOutcome",
    "DefaultHandler",
    "HttpApp",
    "InProcessClient",
    "RemoteError",
    "ServerHost",
    "ServerSettings",
    "connect",
]
