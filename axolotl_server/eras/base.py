"""What a protocol generation decides."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.versions import Revision

if TYPE_CHECKING:
    from axolotl_server.peer import Request

__all__ = ["IEra", "Method", "Methods"]

Method: TypeAlias = Callable[["Request"], Awaitable[bytes | None]]
"""Answers a request with the bytes of its result, or with None if there is nothing to answer."""
Methods: TypeAlias = Mapping[str, Method]


class IEra(ABC):
    """One revision of the protocol: which methods it has, what it admits, how it frames."""

    revision: Revision
    methods: Methods
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
    def code_of(self, error: ProtocolError) -> int:
        """Give the JSON-RPC code of an error."""

    @abstractmethod
    def status_of(self, error: ProtocolError) -> int:
        """Give the HTTP status of an error."""
