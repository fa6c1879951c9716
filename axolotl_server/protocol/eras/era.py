"""One revision of the protocol per era, and the choice of the era for each message."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import Implementation, Principal
from axolotl_core.protocol.messages import Head
from axolotl_core.protocol.versions import (
    HANDSHAKE_REVISIONS,
    LATEST_HANDSHAKE_REVISION,
    LATEST_STATELESS_REVISION,
    Revision,
)
from axolotl_core.registry import AnyTool
from axolotl_core.resources.resource import CacheHint
from axolotl_server.protocol.connection import Connection, IExchange
from axolotl_server.settings.calls import ProtocolSettings

if TYPE_CHECKING:
    from axolotl_core.layers import Call
    from axolotl_server.calls.asking import IAsking
    from axolotl_server.calls.feature_method import FeatureMethod
    from axolotl_server.protocol.request import Request

Method: TypeAlias = Callable[["Request"], Awaitable[bytes | None]]
"""Answers a request with the bytes of its result, or None if there is none."""
Methods: TypeAlias = Mapping[str, Method]


class Row(NamedTuple):
    """A method or a notification of the protocol, in the table from which each revision gets its own."""

    method: str
    revisions: Collection[Revision]
    """The revisions that have the method."""
    needs: str | None
    """The capability without which a server does not have the method."""
    answer: Method
    """Answers a request, or acts on a notification."""
    feature: "FeatureMethod | None" = None
    """Finds the feature that a request names, if requests name one: access rules apply to it."""


VisibleTools: TypeAlias = Callable[[Principal], Coroutine[Any, Any, tuple[AnyTool, ...]]]
"""Lists the tools that a principal may use."""


class IEra(ABC):
    """One revision of the protocol: its methods, the requests that it admits, the form of its results."""

    cancel_on_disconnect: ClassVar[bool]

    def __init__(
        self,
        revision: Revision,
        *,
        methods: Methods,
        notifications: Methods,
        settings: ProtocolSettings,
        asking: "IAsking",
        visible_tools: VisibleTools,
        identity: Implementation,
        list_hint: CacheHint,
    ) -> None:
        self.revision = revision
        self.methods = methods
        self.notifications = notifications
        self.settings = settings
        self.asking = asking
        self.visible_tools = visible_tools
        self.identity = identity
        self.tail = self.tail_with_meta(None)
        """The end of an ordinary result: the members that every result of the revision has, and the closing brace."""
        self.success = b',"isError":false' if settings.is_error == "always" else b""
        """The member that says that a tool succeeded; empty unless the settings ask for it."""
        self.tool_tail = self.success + self.tail
        """The end of the ordinary result of a tool that succeeded."""
        self.list_tail = self.cacheable_tail(list_hint)
        """The end of a list that a client may cache."""

    @abstractmethod
    def admit(self, request: "Request") -> None:
        """Check a request before its method is looked up, or raise a ProtocolError."""

    @abstractmethod
    def tail_with_meta(self, meta: Mapping[str, Any] | None) -> bytes:
        """Return the end of a result that has this `_meta` of its own, or none."""

    @abstractmethod
    def cacheable_tail(self, hint: CacheHint) -> bytes:
        """Return the end of a result that a client may cache."""

    def open_rounds(self, request: "Request", call: "Call") -> None:  # noqa: B027 - not all revisions have rounds
        """Read the state that a request brings from an earlier round, or raise InvalidParams if it is not valid."""

    def input_required(self, request: "Request", call: "Call") -> bytes:
        """Make a result of the questions that the code of a feature asked; elsewhere, it waits for their answers."""
        raise NotImplementedError

    @abstractmethod
    def code_of(self, error: ProtocolError) -> int:
        """Return the JSON-RPC code of an error."""

    @abstractmethod
    def status_of(self, error: ProtocolError) -> int:
        """Return the HTTP status of an error."""


HANDSHAKE_VERSIONS: Final = frozenset({b"", *(revision.name.encode() for revision in HANDSHAKE_REVISIONS)})
"""The values of the version header that do not select a stateless revision; a missing header counts as empty."""


class Eras:
    """The eras of a server."""

    def __init__(self, eras: Sequence[IEra]) -> None:
        self._by_name: Mapping[str, IEra] = {era.revision.name: era for era in eras}
        self.default_handshake = self._by_name[LATEST_HANDSHAKE_REVISION.name]
        """Used for a connection before its handshake."""
        self.stateless = self._by_name[LATEST_STATELESS_REVISION.name]

    def named(self, revision: str) -> IEra:
        """Return the era of a revision that a request was made in."""
        return self._by_name[revision]

    def negotiate(self, requested: str) -> IEra:
        """Choose the revision that a handshake asks for, or the latest revision with a handshake."""
        era = self._by_name.get(requested, self.default_handshake)
        return self.default_handshake if era.revision.stateless else era

    def select(self, head: Head, exchange: IExchange) -> tuple[IEra, Connection | None]:
        """Find the era and the connection, if any, of a message, or raise a ProtocolError if its session is gone."""
        meta, method, headers = head.params.meta, head.method, exchange.headers
        if meta is not UNSET and meta.version is not UNSET:
            return self.stateless, exchange.connection() if headers is None else None
        if method == "initialize":
            return self.default_handshake, None
        if headers is not None:
            if headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
                return self.stateless, None
            if method == "ping" and b"mcp-session-id" not in headers:
                return self.default_handshake, None  # allowed before the handshake, on every transport
        connection = exchange.connection()
        return connection.era or self.default_handshake, connection
