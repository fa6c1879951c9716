"""Audit records of decisions that are no calls: answers to questions, and cancellations of tasks."""

from collections.abc import Collection
from typing import Any, Final

from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.feature import Kind
from axolotl_core.layers import Call
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_core.protocol.identity import Principal
from axolotl_core.task_engine import TaskRecord
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.protocol.request import Request

_ACTIONS: Final = ("accept", "decline", "cancel", "refuse")
_MAX_KEY_CHARACTERS: Final = 200


class DecisionLog:
    """Records who answered a question, and who cancelled a task, which may have no run whose end says so.

    A record is written before the code goes on with the answer. If it is lost, the log counts it.
    """

    def __init__(self, trail: AuditTrail, kinds: Collection[Kind]) -> None:
        self._trail = trail
        self._kinds = frozenset(kinds)

    async def admit(self) -> None:
        """Wait until decisions can be recorded, or raise Refused if they cannot, and must be."""
        await self._trail.admit()

    def answered(self, request: Request, asker: Call | TaskRecord, key: str | None, response: Any) -> None:
        """Record the answer in a request to a question of a call or a task; other responses are no answers."""
        action = response.get("action") if isinstance(response, dict) else None
        if action not in _ACTIONS:
            return
        from axolotl_server.layers.approval_question import is_refused_approval  # few tools ask

        if key is not None and is_refused_approval(key, response):
            action = "decline"
        name = None if key is None else key[:_MAX_KEY_CHARACTERS]
        record = replace(_about(asker), event="answered", key=name, action=action)
        self._write(record, request.exchange.principal, request.exchange.client_address)

    def cancelled(self, task: TaskRecord, reason: CancelReason, who: Principal, address: str | None = None) -> None:
        """Record that somebody cancelled a task."""
        self._write(replace(_about(task), event="cancelled", reason=reason.value), who, address)

    def _write(self, record: AuditRecord, who: Principal, address: str | None) -> None:
        if record.kind not in self._kinds:
            return
        self._trail.give(
            replace(
                record,
                time=timestamp(),
                subject=who.subject,
                tenant=who.tenant,
                issuer=who.issuer,
                client_address=address,
            )
        )


def _about(what: Call | TaskRecord) -> AuditRecord:
    if isinstance(what, TaskRecord):
        return AuditRecord("", "answered", kind="tool", name=what.tool, task=what.id)
    spec = what.spec
    return AuditRecord("", "answered", call_id=what.reference, kind=spec.kind, name=spec.name, toolset=spec.toolset)
