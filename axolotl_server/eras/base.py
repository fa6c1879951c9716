"""What a protocol generation decides."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.versions import Revision
from axolotl_core.resource import CacheHint
from axolotl_server.settings import ProtocolSettings

if TYPE_CHECKING:
    from axolotl_core.layer import ToolCall
    from axolotl_server.eras.asking import IAsking
    from axolotl_server.request import Request

__all__ = ["IEra", "Method", "Methods"]

Method: TypeAlias = Callable[["Request"], Awaitable[bytes | None]]
"""Answers a request with the bytes of its result, or with None if there is nothing to answer."""
Methods: TypeAlias = Mapping[str, Method]


class IEra(ABC):
    """One revision of the protocol: which methods it has, what it admits, how it frames."""

    revision: Revision
    methods: Methods
    settings: ProtocolSettings
    asking: "IAsking"
    tail: bytes
    """What closes an ordinary result: the end of the object and what every result of the revision carries."""
    list_tail: bytes
    """What closes a list that a client may keep."""
    cancel_on_disconnect: ClassVar[bool]

    @abstractmethod
    def admit(self, request: "Request") -> None:
        """Check a request before its method is looked up.

        Raises:
            ProtocolError: if the revision does not let it pass.
        """

    @abstractmethod
    def closing(self, meta: Mapping[str, Any]) -> bytes:
        """Close a result that has a `_meta` of its own."""

    @abstractmethod
    def kept_tail(self, hint: CacheHint) -> bytes:
        """Close a result that a client may keep for a while."""

    @abstractmethod
    def open_rounds(self, request: "Request", call: "ToolCall") -> None:
        """Look at what a request brings from an earlier round of it.

        Raises:
            InvalidParams: if it was not given for this very request.
        """

    @abstractmethod
    def input_required(self, request: "Request", call: "ToolCall") -> bytes:
        """Answer with the questions that the code of a feature asked."""

    @abstractmethod
    def code_of(self, error: ProtocolError) -> int:
        """Give the JSON-RPC code of an error."""

    @abstractmethod
    def status_of(self, error: ProtocolError) -> int:
        """Give the HTTP status of an error."""
