"""Audit records of rejected tokens, which a flood of them cannot multiply."""

import asyncio
from dataclasses import dataclass
from typing import Final

from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_server.audit.trail import AuditTrail

_WINDOW_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Repeated:
    """The rejections of one address after its first one."""

    reason: str
    count: int = 0


class RejectionLog:
    """Records rejected tokens: the first one of each address per minute at once, the others as a number at its end.

    Beyond a number of addresses per minute, rejections are counted together, without an address.
    """

    def __init__(self, trail: AuditTrail, max_addresses: int, window_seconds: float = _WINDOW_SECONDS) -> None:
        self._trail = trail
        self._max_addresses = max_addresses
        self._window_seconds = window_seconds
        self._repeated: dict[str | None, _Repeated] = {}
        self._others = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, address: str | None, reason: str, subject: str | None = None) -> None:
        """Record or count a rejection; the subject is known if the token is valid but lacks a scope."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._window_seconds, self.flush)
        repeated = self._repeated.get(address)
        if repeated is not None:
            repeated.reason = reason
            repeated.count += 1
        elif len(self._repeated) < self._max_addresses:
            self._repeated[address] = _Repeated(reason)
            self._write(AuditRecord(timestamp(), "rejected", subject=subject, reason=reason, client_address=address))
        else:
            self._others += 1

    def flush(self) -> None:
        """Record what was counted, and begin again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counted, self._repeated = self._repeated, {}
        for address, one in counted.items():
            if one.count:
                self._write(
                    AuditRecord(timestamp(), "rejected", reason=one.reason, client_address=address, repeated=one.count)
                )
        others, self._others = self._others, 0
        if others:
            reason = "tokens from further addresses were rejected"
            self._write(AuditRecord(timestamp(), "rejected", reason=reason, repeated=others))

    def _write(self, record: AuditRecord) -> None:
        self._trail.give(record)
