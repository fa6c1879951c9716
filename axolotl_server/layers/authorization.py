"""The check, around every feature, that the principal may use it."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall

if TYPE_CHECKING:
    from axolotl_server.authorization.authorization import Authorization


class AuthorizationLayer(ILayer):
    """Refuses calls of a principal that may not use the feature."""

    def __init__(self, authorization: "Authorization") -> None:
        self._authorization = authorization

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not self._authorization.restricts(spec):
            return call_next
        admit = self._authorization.admit

        def authorized(call: ToolCall) -> Awaitable[Any]:
            """Pass a call on at once if the guard has admitted its request."""
            verdict = getattr(call.caller, "verdict", None)
            if verdict is not None and verdict.spec is spec and verdict.denial is None:
                return call_next(call)
            return decided(call)

        async def decided(call: ToolCall) -> Any:
            await admit(call)
            return await call_next(call)

        return authorized
