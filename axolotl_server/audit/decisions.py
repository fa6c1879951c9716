"""Audit records of what is not a call: answers to questions, other decisions of callers, and rejected tokens."""

import asyncio
from typing import Any, Final

from msgspec.structs import replace

from axolotl_core.layers import Call
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_core.protocol.identity import Principal
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.protocol.request import Request

_ACTIONS: Final = ("accept", "decline", "cancel", "refuse")
_MAX_KEY_CHARACTERS: Final = 200


class DecisionLog:
    """Records who answered a question, and who decided something else that no end of a call says.

    A record is written before the code goes on with the answer. If it is lost, the log counts it.
    """

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    async def admit(self) -> None:
        """Wait until decisions can be recorded, or raise Refused if they cannot, and must be."""
        await self._trail.admit()

    def answered(self, request: Request, asker: Call | AuditRecord, key: str | None, response: Any) -> None:
        """Record the answer in a request to a question of a call, or of what a record is about."""
        action = response.get("action") if isinstance(response, dict) else None
        if action not in _ACTIONS:
            return
        from axolotl_server.layers.approval_question import is_refused_approval  # few tools ask

        if key is not None and is_refused_approval(key, response):
            action = "decline"
        name = None if key is None else key[:_MAX_KEY_CHARACTERS]
        if isinstance(asker, Call):
            spec, call_id = asker.spec, asker.reference
            asker = AuditRecord("", "answered", call_id=call_id, kind=spec.kind, name=spec.name, toolset=spec.toolset)
        self.decided(
            replace(asker, event="answered", key=name, action=action),
            request.exchange.principal,
            request.exchange.client_address,
        )

    def decided(self, record: AuditRecord, who: Principal, address: str | None = None) -> None:
        """Record what somebody decided."""
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


_WINDOW_SECONDS: Final = 60.0


class RejectionLog:
    """Records rejected tokens: the first one of each address per minute at once, the others as a number at its end.

    Beyond a number of addresses per minute, rejections are counted together, without an address.
    """

    def __init__(self, trail: AuditTrail, max_addresses: int, window_seconds: float = _WINDOW_SECONDS) -> None:
        self._trail = trail
        self._max_addresses = max_addresses
        self._window_seconds = window_seconds
        self._repeated: dict[str | None, tuple[str, int]] = {}
        """By address: the reason of its last rejection, and how many there were after the first one."""
        self._others = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, address: str | None, reason: str, subject: str | None = None) -> None:
        """Record or count a rejection; the subject is known if the token is valid but lacks a scope."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._window_seconds, self.flush)
        if address in self._repeated:
            self._repeated[address] = reason, self._repeated[address][1] + 1
        elif len(self._repeated) < self._max_addresses:
            self._repeated[address] = reason, 0
            self._trail.give(
                AuditRecord(timestamp(), "rejected", subject=subject, reason=reason, client_address=address)
            )
        else:
            self._others += 1

    def flush(self) -> None:
        """Record what was counted, and begin again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counted, self._repeated = self._repeated, {}
        for address, (reason, count) in counted.items():
            if count:
                self._trail.give(
                    AuditRecord(timestamp(), "rejected", reason=reason, client_address=address, repeated=count)
                )
        others, self._others = self._others, 0
        if others:
            reason = "tokens from further addresses were rejected"
            self._trail.give(AuditRecord(timestamp(), "rejected", reason=reason, repeated=others))
