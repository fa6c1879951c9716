"""`Extension`: the port through which anything is added to the kernel of a server."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError
from axolotl_core.health import IHealthCheck
from axolotl_core.layers import Layer
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.versions import Revision
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.protocol.connection import IObserver
from axolotl_server.protocol.eras.era import Method, Row
from axolotl_server.protocol.request import Request
from axolotl_server.settings.section import Section

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly
    from axolotl_server.http.asgi import IAuthenticator, Route
    from axolotl_server.observation.observation import Observation
    from axolotl_server.sessions.sessions import Sessions

ExtensionMethod: TypeAlias = Callable[[Mapping[str, Any], Context], Awaitable[Mapping[str, Any]]]
"""Answers a request: takes its parameters and returns its result."""


class FeatureSet(msgspec.Struct, frozen=True):
    """Features of one kind that are served together; the name is None outside of any set."""

    name: str | None
    items: tuple[Any, ...]


class Topic(NamedTuple):
    """Something with names that clients can follow."""

    what: str
    """What the names stand for, in the plural, for errors."""
    choose: Callable[[Request, tuple[str, ...]], Awaitable[tuple[str, ...]]]
    """Chooses the names that a caller may follow, of those that it asked for."""


PanelAction: TypeAlias = Callable[[Mapping[str, str], Principal], Awaitable[Mapping[str, Any]]]
"""Answers a page of the console: takes the query of its request, and who sent it."""


class Panel(NamedTuple):
    """A page of the console: what it shows, and what can be done there."""

    name: str
    describe: PanelAction
    actions: Mapping[str, PanelAction] = {}
    """Sent with POST."""


class Extension:
    """Adds to a server what it does not have. Every member has a default: override those that you need.

    Clients see the identifier and the settings. `features` is asked first, then comes `attach`; the others are asked
    when the server needs them, some repeatedly.
    """

    identifier: str
    """A name under your own domain, such as `com.example/receipts`."""
    settings: Mapping[str, Any] = {}
    """The settings that clients see."""
    section: str = ""
    """The name of its section `[extensions.NAME]` in the settings of the server; empty if it has none."""
    section_model: type[Section] = Section
    """What its section may contain. `attach` gets an instance of it."""

    def __init__(self, identifier: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
        """Announce an identifier with settings, for an extension that consists of tools and resources."""
        if identifier is not None:
            self.identifier = identifier
        if settings is not None:
            self.settings = settings

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        """The methods that it adds for clients that announce it; they run inside of all layers, as tools do."""
        return {}

    async def features(self) -> Mapping[str, Sequence[FeatureSet]]:
        """Return the features to serve, under `tools`, `prompts`, `resources`, or a kind of its own.

        A ConfigurationError lists everything that is wrong with them.
        """
        return {}

    def attach(self, server: "ServerAssembly", section: Any) -> None:
        """Take the server that it is added to, whose objects are made when they are first used, and its own section.

        A server that is started again attaches the same extension once more: replace what you keep.
        """

    def observers(self) -> Iterable[IObserver]:
        """Return what notices every request, inside and outside of the layers."""
        return ()

    def layers(self) -> Iterable[Layer]:
        """Return layers around every feature, inside of those of the server and outside of those of the container."""
        return ()

    def catalogues(self) -> Iterable[Catalogue[Any, Any]]:
        """Return the catalogues of its own kinds of features; the host closes them."""
        return ()

    def rows(self) -> Iterable[Row]:
        """Return methods that answer requests themselves, outside of all layers, for the revisions that have them."""
        return ()

    def around(self, name: str, method: Method, revision: Revision) -> Method:
        """Return what answers a method in a revision: the method itself, or a function around it."""
        return method

    def topics(self) -> Mapping[str, Topic]:
        """Return what clients can subscribe to, by the member of `notifications` in `subscriptions/listen`."""
        return {}

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """Return what a client of this revision learns about it; members of `extensions` are merged."""
        return {"extensions": {self.identifier: self.settings}}

    def health_checks(self) -> Iterable[IHealthCheck]:
        """Return the checks of what it depends on."""
        return ()

    def routes(self, gate: "IAuthenticator | None", sessions: "Callable[[], Sessions]") -> "Mapping[str, Route]":
        """Return what it serves over HTTP, by path; the sessions exist once the application is complete."""
        return {}

    def panels(self) -> Iterable[Panel]:
        """Return the pages that the console shows for it."""
        return ()

    def worker_warnings(self) -> Iterable[str]:
        """Return what several processes do not share although an operator may expect it, and how they can."""
        return ()

    def observe(self, observation: "Observation") -> None:
        """Add its numbers and spans to the telemetry of the server, which is enabled."""

    async def start(self) -> None:
        """Begin to work, because the server begins to serve."""

    def pause(self) -> None:
        """Begin nothing new, because the server is about to stop; what runs goes on."""

    async def stop(self) -> None:
        """End everything. Calls have ended, and clients may still be connected; it may be called twice."""


_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_SECTION: Final = re.compile(r"[a-z][a-z0-9_]*")


def check_extension(extension: Any) -> None:
    """Check an extension before clients see it.

    Raises:
        ConfigurationError: if it is not an extension, or its identifier is invalid.
    """
    if isinstance(extension, type) and issubclass(extension, Extension):
        raise ConfigurationError(f"The role extensions contains the class {extension.__name__}; use an instance")
    if not isinstance(extension, Extension):
        raise ConfigurationError(f"The role extensions contains {type(extension).__name__}, which is not an Extension")
    identifier = getattr(extension, "identifier", None)
    if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
        kind = type(extension).__name__
        raise ConfigurationError(f"{kind} has the identifier {identifier!r}: use one such as com.example/receipts")
    if extension.section and not _SECTION.fullmatch(extension.section):
        raise ConfigurationError(
            f"{identifier} has the section {extension.section!r}: use lower-case letters, digits and underscores"
        )
    model: Any = extension.section_model
    if not isinstance(model, type) or not issubclass(model, Section):
        raise ConfigurationError(f"The section_model of {identifier} is not a class that extends Section")
