"""`Principal`, `Implementation`, `Icon` and `RequestId`."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

RequestId: TypeAlias = int | str
"""Identifies the request of a response. `1` and `"1"` are different IDs."""


class Icon(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An icon that clients can display. `src` is an https or data URI."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The name and version of a client or server, and details to display."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[Icon, ...] | None = None


class Principal(msgspec.Struct, frozen=True):
    """The verified identity on whose behalf a call is made."""

    subject: str
    tenant: str | None = None
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = {}
    issuer: str | None = None
    """The issuer of the subject; None if it comes from this server's settings."""

    @property
    def identity(self) -> tuple[str | None, str | None, str]:
        """The part that does not change between requests. Scopes, roles and claims can change with each token."""
        return self.issuer, self.tenant, self.subject


ANONYMOUS = Principal("anonymous")
