"""Calls that began and of which no end is recorded yet."""

import logging
from typing import Final

import msgspec

from axolotl_core.audit import AuditRecord
from axolotl_core.feature import Kind
from axolotl_server.audit.timestamps import timestamp

__all__ = ["Glance", "Start", "Unfinished", "glance"]


class Start(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a call that began."""

    call_id: str
    time: str
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None


class Glance(msgspec.Struct, frozen=True):
    """What a reader of a log needs of each line."""

    event: str = ""
    time: str = ""
    call_id: str | None = None
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None
    algorithm: str | None = None
    kept_from: int | None = None
    lost: int = 0
    unfinished: tuple[Start, ...] = ()


_log: Final = logging.getLogger("axolotl")
_NOTHING: Final = Glance()
_decode: Final = msgspec.json.Decoder(Glance).decode


def glance(line: bytes) -> Glance:
    """Read a line; one that cannot be read says nothing."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _NOTHING


class Unfinished(dict[str, Start]):
    """Follows a log: by the id of the call, what began and did not end. It is as small as the number of such calls."""

    def follow(self, seen: Glance) -> None:
        """Take notice of a line of the log."""
        if seen.event == "open":
            self.update({start.call_id: start for start in seen.unfinished})
        elif seen.call_id is None:
            return
        elif seen.event == "start":
            self[seen.call_id] = Start(seen.call_id, seen.time, seen.kind, seen.name, seen.subject, seen.tenant)
        elif seen.event == "end":
            self.pop(seen.call_id, None)

    def endings(self) -> list[AuditRecord]:
        """Say of each that nobody will ever know how it ended."""
        if self:
            _log.warning("calls whose end the last process did not live to see: %d", len(self))
        return [
            AuditRecord(
                time=timestamp(),
                event="end",
                call_id=start.call_id,
                kind=start.kind,
                name=start.name,
                subject=start.subject,
                tenant=start.tenant,
                outcome="unknown",
                reason="the process ended before the call did",
            )
            for start in self.values()
        ]
