"""Extensions of the protocol that a server speaks."""

import re
from abc import ABC
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from axolotl_core.calls.context import ToolContext
from axolotl_core.errors import ConfigurationError

ExtensionMethod: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[Mapping[str, Any]]]
"""Answers a request: takes its parameters, gives its result."""

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")


class IExtension(ABC):
    """Something beyond the core of the protocol: clients see its identifier and settings, and may call its methods.

    A client's own settings of the extension are `context.client_extension(identifier)`.
    """

    identifier: str
    """A name below a domain of yours, as `com.example/receipts`."""
    settings: Mapping[str, Any] = {}
    """What clients are told about it."""

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        """The methods it adds to the protocol."""
        return {}


class Extension(IExtension):
    """An extension that is only announced, because what it is about happens in tools and resources."""

    def __init__(self, identifier: str, settings: Mapping[str, Any] | None = None) -> None:
        self.identifier = identifier
        self.settings = settings or {}


def check_extension(extension: Any) -> None:
    """Look at an extension before it is announced.

    Raises:
        ConfigurationError: if it is none, or its identifier has not the form that the protocol demands.
    """
    if isinstance(extension, type) and issubclass(extension, IExtension):
        raise ConfigurationError(f"The role extensions holds the class {extension.__name__}: give it an instance")
    if not isinstance(extension, IExtension):
        raise ConfigurationError(f"The role extensions holds {type(extension).__name__}, which is no IExtension")
    identifier = getattr(extension, "identifier", None)
    if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
        kind = type(extension).__name__
        raise ConfigurationError(f"{kind} has the identifier {identifier!r}: use a form like com.example/receipts")
