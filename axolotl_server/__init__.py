"""The server around the tools: handler, eras, layers, transports and the composition root.

An application needs little of it: `ServerSettings` for a container's `settings` role, `connect` for its tests,
`ServerHost` and `HttpApp` where it brings its own process.
"""

from axolotl_server.client import (
    ACCEPT,
    CANCEL,
    DECLINE,
    Answer,
    Answering,
    CallOutcome,
    Change,
    InProcessClient,
    Inquiry,
    Listening,
    PromptOutcome,
    RemoteError,
    ResourceOutcome,
    TaskCancelled,
    UnansweredQuestion,
    connect,
)
from axolotl_server.handler import DefaultHandler
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.settings import ServerSettings

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
]
