"""What an application has around its endpoint: who may enter, and what is served beside it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from axolotl_core.protocol.identity import Principal
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.refusals import HttpRefusal

__all__ = ["IGate", "Premises", "Route", "ServeRoute"]

ServeRoute: TypeAlias = Callable[[Scope, Mapping[bytes, bytes], Receive, Send], Awaitable[None]]
"""Answers a request, whose headers are given once more as a mapping; may raise `HttpRefusal`."""


class IGate(Protocol):
    """Finds out on whose behalf a request is made, before its body is read."""

    async def admit(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Give the principal.

        Raises:
            HttpRefusal: 401 with a challenge if nobody can be recognised, 503 if that cannot be found out now.
        """
        ...

    def demand(self, scopes: Iterable[str]) -> HttpRefusal:
        """Say which scopes a request needs that its principal does not have: 403 with a challenge that names them."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """Something that is served beside the endpoint, at one path."""

    serve: ServeRoute
    is_open: bool = False
    """Whether it answers whoever asks, by whatever name: probes know neither the Host nor a token."""


@dataclass(frozen=True, slots=True)
class Premises:
    """The gate and the routes of an application."""

    gate: IGate | None = None
    """None where everybody is anonymous."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    """By path."""
