"""What a principal sees of a list: as much of it as it may use."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from axolotl_core.protocol.identity import Principal
from axolotl_core.spec import FeatureSpec

if TYPE_CHECKING:
    from axolotl_server.authorization.authorization import Authorization

__all__ = ["Views"]

ViewT = TypeVar("ViewT")
ValueT = TypeVar("ValueT")

_MOST_PROFILES: Final = 1000
_MOST_VIEWS: Final = 32


class _Kept(Generic[ValueT]):
    """So many values, those that were used last."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._values: OrderedDict[Hashable, ValueT] = OrderedDict()

    def get(self, key: Hashable) -> ValueT | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: Hashable, value: ValueT) -> None:
        self._values[key] = value
        if len(self._values) > self._maximum:
            self._values.popitem(last=False)


class Views(Generic[ViewT]):
    """The parts of one list that principals see; those who see the same share what was made for it.

    Principals that the policy treats alike are decided on once; where an authorizer decides that nobody can see into,
    it is asked each time.
    """

    def __init__(self, specs: Sequence[FeatureSpec]) -> None:
        self._specs = specs
        self._demanded: frozenset[str] = frozenset().union(*(spec.feature.scopes for spec in specs))
        self._by_profile: _Kept[bytes] = _Kept(_MOST_PROFILES)
        self._views: _Kept[ViewT] = _Kept(_MOST_VIEWS)

    async def mask(self, principal: Principal, authorization: "Authorization") -> bytes:
        """Tell for each feature whether the principal sees it: a byte each, 1 or 0.

        Raises:
            InternalError: if nobody could decide.
        """
        if authorization.policy is None:
            return bytes(await authorization.allowed(principal, self._specs))
        profile = authorization.policy.profile(principal), principal.scopes & self._demanded
        mask = self._by_profile.get(profile)
        if mask is None:
            mask = bytes(await authorization.allowed(principal, self._specs))
            self._by_profile.put(profile, mask)
        return mask

    def view(self, mask: bytes, make: Callable[[], ViewT]) -> ViewT:
        """Give what was made for a part of the list, made once while it is in use."""
        view = self._views.get(mask)
        if view is None:
            view = make()
            self._views.put(mask, view)
        return view
