"""`IExtension` and `Extension`: extensions of the protocol."""

import re
from abc import ABC
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from axolotl_core.calls.context import Context
from axolotl_core.errors import ConfigurationError

ExtensionMethod: TypeAlias = Callable[[Mapping[str, Any], Context], Awaitable[Mapping[str, Any]]]
"""Answers a request: takes its parameters and returns its result."""

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")


class IExtension(ABC):
    """An extension of the protocol. Clients see its identifier and settings, and can call its methods.

    `context.client_extension(identifier)` returns the client's settings for the extension.
    """

    identifier: str
    """A name under your own domain, such as `com.example/receipts`."""
    settings: Mapping[str, Any] = {}
    """The settings that clients see."""

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        """The methods that it adds to the protocol."""
        return {}


class Extension(IExtension):
    """An extension without methods, for extensions that consist of tools and resources."""

    def __init__(self, identifier: str, settings: Mapping[str, Any] | None = None) -> None:
        self.identifier = identifier
        self.settings = settings or {}


def check_extension(extension: Any) -> None:
    """Check an extension before clients see it.

    Raises:
        ConfigurationError: if it is not an extension, or its identifier is invalid.
    """
    if isinstance(extension, type) and issubclass(extension, IExtension):
        raise ConfigurationError(f"The role extensions contains the class {extension.__name__}; use an instance")
    if not isinstance(extension, IExtension):
        raise ConfigurationError(f"The role extensions contains {type(extension).__name__}, which is not an IExtension")
    identifier = getattr(extension, "identifier", None)
    if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
        kind = type(extension).__name__
        raise ConfigurationError(f"{kind} has the identifier {identifier!r}: use one such as com.example/receipts")
