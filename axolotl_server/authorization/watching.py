"""Which resources a principal may hear of."""

from collections.abc import Callable, Iterable, Sequence

from axolotl_core.protocol.identity import Principal
from axolotl_server.authorization.authorization import Authorization
from axolotl_server.authorization.doors import Doors

__all__ = ["ResourceWatch"]


class ResourceWatch:
    """Keeps changes from those who may not read what changed."""

    def __init__(self, authorization: Authorization, doors: Doors) -> None:
        self._authorization = authorization
        self._doors = doors

    async def hearable(self, principal: Principal, uris: Sequence[str]) -> tuple[str, ...]:
        """Leave out the URIs behind which there is nothing that the principal may read.

        Raises:
            InternalError: if nobody could decide.
        """
        found = {uri: binding.spec for uri in uris if (binding := self._doors.behind(uri)) is not None}
        specs = list(dict.fromkeys(found.values()))
        allowed = dict(zip(specs, await self._authorization.allowed(principal, specs), strict=True))
        return tuple(uri for uri in uris if uri in found and allowed[found[uri]])

    def kin_of(self, uri: str, parents: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """Give the URIs whose watchers hear of a change: of those that begin it, the ones of the same resource.

        Whoever watches a directory hears of its files where one template makes both. Behind any other URI may be
        something that the watcher may not read, and must not hear of.
        """
        binding = self._doors.behind(uri)
        return frozenset(one for one in parents(uri) if one == uri or self._doors.behind(one) is binding is not None)
