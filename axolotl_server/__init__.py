"""The server around the tools: handler, eras, layers, transports and the composition root.

An application needs little of it: `ServerSettings` for a container's `settings` role, `connect` for its tests,
`MountedApp` in an application of another framework, `ServerHost` and `make_app` where it brings its own process,
`make_handler` where it brings its own transport.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axolotl_server.call_providers import call_cancellation, call_context, call_principal
    from axolotl_server.client.channel import InvalidReply
    from axolotl_server.client.client import Client, InProcessClient
    from axolotl_server.client.connecting import connect, connect_process, connect_url
    from axolotl_server.client.event_reading import ClientLimits
    from axolotl_server.client.http_channel import HttpStatusError
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
        ServerDescription,
        TaskCancelled,
        UnansweredQuestion,
    )
    from axolotl_server.client.requests import Listening
    from axolotl_server.handler import DefaultHandler
    from axolotl_server.host import ServerHost, make_handler
    from axolotl_server.http.app import HttpApp
    from axolotl_server.http.assembly import make_app
    from axolotl_server.http.mounting import MountedApp, starlette_user
    from axolotl_server.observation.json_log import JsonFormatter
    from axolotl_server.settings.server import ServerSettings
    from axolotl_server.transports.stream_exchange import StreamExchange

__all__ = [
    "ACCEPT",
    "CANCEL",
    "DECLINE",
    "Answer",
    "Answering",
    "CallOutcome",
    "Change",
    "Client",
    "ClientLimits",
    "DefaultHandler",
    "HttpApp",
    "HttpStatusError",
    "InProcessClient",
    "Inquiry",
    "InvalidReply",
    "JsonFormatter",
    "Listening",
    "MountedApp",
    "PromptOutcome",
    "RemoteError",
    "ResourceOutcome",
    "ServerDescription",
    "ServerHost",
    "ServerSettings",
    "StreamExchange",
    "TaskCancelled",
    "UnansweredQuestion",
    "call_cancellation",
    "call_context",
    "call_principal",
    "connect",
    "connect_process",
    "connect_url",
    "make_app",
    "make_handler",
    "starlette_user",
]

_HOMES: Final = {
    "ACCEPT": "client.outcomes",
    "Answer": "client.outcomes",
    "Answering": "client.outcomes",
    "CANCEL": "client.outcomes",
    "CallOutcome": "client.outcomes",
    "Change": "client.outcomes",
    "DECLINE": "client.outcomes",
    "Client": "client.client",
    "ClientLimits": "client.event_reading",
    "HttpStatusError": "client.http_channel",
    "InProcessClient": "client.client",
    "Inquiry": "client.outcomes",
    "InvalidReply": "client.channel",
    "Listening": "client.requests",
    "PromptOutcome": "client.outcomes",
    "RemoteError": "client.outcomes",
    "ResourceOutcome": "client.outcomes",
    "ServerDescription": "client.outcomes",
    "TaskCancelled": "client.outcomes",
    "UnansweredQuestion": "client.outcomes",
    "connect": "client.connecting",
    "connect_process": "client.connecting",
    "connect_url": "client.connecting",
    "DefaultHandler": "handler",
    "HttpApp": "http.app",
    "ServerHost": "host",
    "ServerSettings": "settings.server",
    "StreamExchange": "transports.stream_exchange",
    "MountedApp": "http.mounting",
    "make_app": "http.assembly",
    "starlette_user": "http.mounting",
    "make_handler": "host",
    "JsonFormatter": "observation.json_log",
    "call_cancellation": "call_providers",
    "call_context": "call_providers",
    "call_principal": "call_providers",
}
"""The module that defines each name."""


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that a program loads only the parts it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
