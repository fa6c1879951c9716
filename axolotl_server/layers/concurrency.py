"""A tool may say how many of its calls run at once."""

from typing import Any

from axolotl_core.errors import Overloaded
from axolotl_core.layer import ILayer, Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["ConcurrencyLayer"]

_RETRY_AFTER_SECONDS = 1.0


class ConcurrencyLayer(ILayer):
    """Counts the running calls of a tool and refuses those beyond its limit, at once and retryably."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Give the tool its own counter; a tool without a limit is left alone."""
        limit = spec.limits.max_concurrency
        if limit is None:
            return call_next
        running = 0

        async def admitted(call: ToolCall) -> Any:
            nonlocal running
            if running >= limit:
                raise Overloaded(f"{spec.name} is busy, it runs {limit} at once; try again", _RETRY_AFTER_SECONDS)
            running += 1
            try:
                return await call_next(call)
            finally:
                running -= 1

        return admitted
