"""Who may not use a feature does not reach it."""

from typing import Any, Protocol

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall


class IAuthorizationCheck(Protocol):
    """What knows who may use what."""

    def concerns(self, spec: FeatureSpec) -> bool:
        """Tell whether a feature is not for everybody, whoever that is."""
        ...

    async def admit(self, call: ToolCall) -> None:
        """Let a call pass.

        Raises:
            Forbidden: if the principal may not use the feature, or an error that says there is none.
        """
        ...


class AuthorizationLayer(ILayer):
    """Asks before every call, of whatever kind."""

    def __init__(self, gate: IAuthorizationCheck) -> None:
        self._gate = gate

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put the question in front of the feature."""
        if not self._gate.concerns(spec):
            return call_next
        admit = self._gate.admit

        async def authorized(call: ToolCall) -> Any:
            await admit(call)
            return await call_next(call)

        return authorized
