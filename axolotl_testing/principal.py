"""The principal that a test acts as."""

from collections.abc import Iterable, Mapping
from typing import Any

from axolotl_core.protocol.identity import Principal


def as_principal(
    subject: str,
    *,
    roles: Iterable[str] = (),
    scopes: Iterable[str] = (),
    tenant: str | None = None,
    claims: Mapping[str, Any] | None = None,
) -> Principal:
    """Make the principal of a caller."""
    return Principal(subject, tenant, frozenset(scopes), frozenset(roles), dict(claims or {}))
