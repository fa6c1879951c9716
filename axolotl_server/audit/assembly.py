"""Assembly of the audit log from the settings and the sinks of the container."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Final, get_args

from axolotl_core.features.feature import Kind, RuledKind
from axolotl_core.policies.audit import IAuditSink
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.decisions import DecisionLog
from axolotl_server.audit.records import describer
from axolotl_server.audit.redaction import nothing_shown, redactor
from axolotl_server.audit.rejections import RejectionLog
from axolotl_server.audit.sinks import GroupSink, StderrSink
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.layers.audit import AuditLayer
from axolotl_server.settings.policies import AuditSettings

TIMEOUT_SECONDS: Final = 5.0
"""How long a sink may take to write a record before it counts as failed."""
MAX_REJECTIONS_PER_MINUTE: Final = 100
"""For how many addresses per minute rejected tokens are recorded. Further ones are only counted."""
_KINDS: Final[tuple[Kind, ...]] = get_args(RuledKind)
"""The kinds of features whose calls are recorded."""
_ONLY_WORKER: Final = "1"
"""The number of a server that is one process; the settings of each of several workers name their files already."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a server: its trail and its layers."""

    trail: AuditTrail
    """Opened when the server starts to serve, and closed when it stops."""
    layer: AuditLayer
    """Records how each call ended, and that one is about to run."""
    decisions: DecisionLog
    """Records answers to questions, and cancellations of tasks."""
    rejections: RejectionLog | None = None
    """Records rejected tokens; None if that is turned off."""

    def close(self) -> None:
        """Record what is left to record, and close all sinks."""
        if self.rejections is not None:
            self.rejections.flush()
        self.trail.close()


def make_audit(settings: AuditSettings, sinks: Sequence[IAuditSink] = ()) -> Audit | None:
    """Make the audit; None if there is no sink. Files are opened later."""
    hashing = Hashing(None if settings.key is None else settings.key.get_secret_value())
    own = _sinks(settings.of_worker(_ONLY_WORKER), hashing)
    if not own and not sinks:
        return None
    trail = AuditTrail([*own, *sinks], settings.on_failure, TIMEOUT_SECONDS)
    show = redactor if settings.arguments == "redacted" else nothing_shown
    layer = AuditLayer(trail, describer(hashing, show), partial(token_hex, 8), _KINDS)
    rejections = RejectionLog(trail, MAX_REJECTIONS_PER_MINUTE)
    return Audit(trail, layer, DecisionLog(trail, _KINDS), rejections)


def _sinks(settings: AuditSettings, hashing: Hashing) -> list[IAuditSink]:
    made: list[IAuditSink] = []
    if settings.jsonl_path is not None:
        made.append(_jsonl(settings, hashing))
    if settings.stderr:
        made.append(StderrSink())
    return made


def _jsonl(settings: AuditSettings, hashing: Hashing) -> IAuditSink:
    from axolotl_server.audit.jsonl_store import JsonlStore  # most servers have no audit log

    assert settings.jsonl_path is not None
    durable = settings.durability == "fsync"
    store = JsonlStore(
        settings.jsonl_path, hashing, max_bytes=settings.max_bytes, max_files=settings.max_files, durable=durable
    )
    return GroupSink(store) if durable else store
