"""Who speaks: implementations, icons and principals."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

RequestId: TypeAlias = int | str
"""What pairs a reply with its request; `1` and `"1"` are two ids."""


class Icon(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A picture a client may show beside a name; `src` is an https or data URI."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The name and version of a client or server, with what it likes to show of itself."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] | None = None


class Principal(msgspec.Struct, frozen=True):
    """On whose behalf a call is made, as far as the transport could verify it."""

    subject: str
    tenant: str | None = None
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = {}
    issuer: str | None = None
    """Who vouches for the subject; None where this server's own settings name it."""

    @property
    def identity(self) -> tuple[str | None, str | None, str]:
        """What stays the same from one request to the next: scopes, roles and claims change with every token."""
        return self.issuer, self.tenant, self.subject


ANONYMOUS = Principal("anonymous")
