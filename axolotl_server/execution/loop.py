"""Tools that run on the event loop, in the task of their call."""

from collections.abc import Awaitable
from typing import Any

from axolotl_core.layer import Invoke, ToolCall
from axolotl_core.spec import FeatureSpec

__all__ = ["run_on_loop"]


def run_on_loop(spec: FeatureSpec) -> Invoke:
    """Await the tool in place."""
    execute = spec.feature.execute

    def invoke(call: ToolCall) -> Awaitable[Any]:
        return execute(call.arguments, call)

    return invoke
