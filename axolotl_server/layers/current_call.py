"""Which call the running code belongs to, for log messages that it writes without knowing."""

from contextvars import ContextVar
from typing import Any, Final

from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["CURRENT_CALL", "CurrentCallLayer"]

CURRENT_CALL: Final[ContextVar[ToolCall | None]] = ContextVar("axolotl_call", default=None)
"""The innermost call that runs here, in worker threads too."""


class CurrentCallLayer(ILayer):
    """Makes every call known to what it calls."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Note the call while it runs."""

        async def known(call: ToolCall) -> Any:
            before = CURRENT_CALL.get()
            CURRENT_CALL.set(call)
            try:
                return await call_next(call)
            finally:
                # By its value, not by a token: code that is thrown away ends in a context that knows no token.
                CURRENT_CALL.set(before)

        return known
