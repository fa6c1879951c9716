"""The server around the tools: handler, eras, layers, transports and the composition root.

An application needs little of it: `ServerSettings` for a container's `settings` role, `connect` for its tests,
`ServerHost` and `make_app` where it brings its own process.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axolotl_server.client.client import InProcessClient, connect
    from axolotl_server.client.outcomes import (
        ACCEPT,
        CANCEL,
        DECLINE,
        Answer,
        Answering,
        CallOutcome,
        Change,
        Inquiry,
        PromptOutcome,
        RemoteError,
        ResourceOutcome,
        TaskCancelled,
        UnansweredQuestion,
    )
    from axolotl_server.client.requests import Listening
    from axolotl_server.handler import DefaultHandler
    from axolotl_server.host import ServerHost
    from axolotl_server.http.app import HttpApp
    from axolotl_server.http.assembly import make_app
    from axolotl_server.settings.server import ServerSettings

__all__ = [
    "ACCEPT",
    "Answer",
    "Answering",
    "CANCEL",
    "CallOutcome",
    "Change",
    "DECLINE",
    "DefaultHandler",
    "HttpApp",
    "InProcessClient",
    "Inquiry",
    "Listening",
    "PromptOutcome",
    "RemoteError",
    "ResourceOutcome",
    "ServerHost",
    "ServerSettings",
    "TaskCancelled",
    "UnansweredQuestion",
    "connect",
    "make_app",
]

_HOMES: Final = {
    "ACCEPT": "client.outcomes",
    "Answer": "client.outcomes",
    "Answering": "client.outcomes",
    "CANCEL": "client.outcomes",
    "CallOutcome": "client.outcomes",
    "Change": "client.outcomes",
    "DECLINE": "client.outcomes",
    "InProcessClient": "client.client",
    "Inquiry": "client.outcomes",
    "Listening": "client.requests",
    "PromptOutcome": "client.outcomes",
    "RemoteError": "client.outcomes",
    "ResourceOutcome": "client.outcomes",
    "TaskCancelled": "client.outcomes",
    "UnansweredQuestion": "client.outcomes",
    "connect": "client.client",
    "DefaultHandler": "handler",
    "HttpApp": "http.app",
    "ServerHost": "host",
    "ServerSettings": "settings.server",
    "make_app": "http.assembly",
}
"""Where the names are; all others are in the module of the client."""


def __getattr__(name: str) -> Any:
    """Load what is asked for: whoever needs one part shall not wait for all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOMES.get(name, 'client.client')}"), name)
    return found
