"""The audit of a server, made from the settings and the sinks of the container."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.decisions import DecisionLog, RejectionLog
from axolotl_server.audit.jsonl_store import GroupSink, JsonlStore
from axolotl_server.audit.records import describer, encode_record
from axolotl_server.audit.redaction import redactor
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.layers.audit import AuditLayer
from axolotl_server.settings.policies import AuditSettings

TIMEOUT_SECONDS: Final = 5.0
"""How long a sink may take to write a record before it counts as failed."""
MAX_REJECTIONS_PER_MINUTE: Final = 100
"""For how many addresses per minute rejected tokens are recorded. Further ones are only counted."""
_ONLY_WORKER: Final = "1"
"""The number of a server that is one process; the settings of each of several workers name their files already."""
_STDERR: Final = 2


class StderrSink(IAuditSink):
    """Writes one line per record, without a chain: earlier lines cannot be read back."""

    def write(self, record: AuditRecord) -> None:
        line = encode_record(record) + b"\n"
        while line:
            line = line[os.write(_STDERR, line) :]

    def __str__(self) -> str:
        return "The standard error stream"


class Audit:
    """The audit of a server: its trail, and what writes records to it."""

    def __init__(self, trail: AuditTrail, layer: AuditLayer) -> None:
        self.trail = trail
        """Opened when the server starts to serve, and closed when it stops."""
        self.layer = layer
        """Records how each call ended, and that one is about to run."""
        self.decisions = DecisionLog(trail)
        """Records answers to questions, and what else callers decided."""
        self.rejections = RejectionLog(trail, MAX_REJECTIONS_PER_MINUTE)
        """Records rejected tokens."""

    def close(self) -> None:
        """Record what is left to record, and close all sinks."""
        self.rejections.flush()
        self.trail.close()


def make_audit(settings: AuditSettings, sinks: Sequence[IAuditSink] = ()) -> Audit | None:
    """Make the audit; None if there is no sink. Files are opened later."""
    hashing = Hashing(None if settings.key is None else settings.key.get_secret_value())
    settings, every = settings.of_worker(_ONLY_WORKER), list(sinks)
    if settings.stderr:
        every.insert(0, StderrSink())
    if settings.jsonl_path is not None:
        durable = settings.durability == "fsync"
        store = JsonlStore(
            settings.jsonl_path, hashing, max_bytes=settings.max_bytes, max_files=settings.max_files, durable=durable
        )
        every.insert(0, GroupSink(store) if durable else store)
    if not every:
        return None
    trail = AuditTrail(every, settings.on_failure, TIMEOUT_SECONDS)
    show = redactor if settings.arguments == "redacted" else lambda spec: None
    return Audit(trail, AuditLayer(trail, partial(describer, hashing=hashing, redactor=show)))
