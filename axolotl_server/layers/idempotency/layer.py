"""The layer that runs a tool once per key; repeated calls share the result."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_server.layers.deadline import DeadlineTable

if TYPE_CHECKING:
    from axolotl_server.execution.outage_log import OutageLog


MAX_RECORD_BYTES: Final = 1024 * 1024
"""The maximum size of a stored result. For a larger one, only the fact that the call has finished is stored."""
STORE_TIMEOUT_SECONDS: Final = 1.0
"""How long a call waits for the store."""


class IdempotencyLayer(ILayer):
    """Runs the code of a tool once per key, for tools that ask for it.

    Questions of the tool are not shared: if a run ends with one, the other calls that wait for it start again.
    """

    def __init__(
        self,
        store: IResultStore,
        close_scope: Callable[[Call], object],
        outages: "OutageLog",
        deadlines: DeadlineTable,
        *,
        max_record_bytes: int = MAX_RECORD_BYTES,
        on_store_failure: Literal["open", "closed"] = "closed",
        store_timeout_seconds: float = STORE_TIMEOUT_SECONDS,
        poll_seconds: float = 0.05,
    ) -> None:
        """Take the store of results, the function that closes the scope of a run, the log of outages, and deadlines."""
        self.store = store
        self.close_scope = close_scope
        self.outages = outages
        self.deadlines = deadlines
        self.max_record_bytes = max_record_bytes
        self.on_store_failure: Literal["open", "closed"] = on_store_failure
        self.store_timeout_seconds = store_timeout_seconds
        self.poll_seconds = poll_seconds

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not isinstance(spec, ToolSpec) or spec.tool.idempotency is None:
            return call_next
        from axolotl_server.layers.idempotency.work_once import WorkOnce  # few tools ask for it

        return WorkOnce(spec, call_next, spec.tool.idempotency, self).invoke
