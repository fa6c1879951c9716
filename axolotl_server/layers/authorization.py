"""The check, around every feature, that the principal may use it."""

from typing import TYPE_CHECKING, Any

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall

if TYPE_CHECKING:
    from axolotl_server.access.authorization import Authorization


class AuthorizationLayer(ILayer):
    """Refuses calls of a principal that may not use the feature."""

    def __init__(self, authorization: "Authorization") -> None:
        self._authorization = authorization

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not self._authorization.restricts(spec):
            return call_next
        admit = self._authorization.admit

        async def authorized(call: ToolCall) -> Any:
            await admit(call)
            return await call_next(call)

        return authorized
