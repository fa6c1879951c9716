"""Audited calls through the layers of a server, and readers of audit logs."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axolotl_core import ITool, Principal
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.layers import Call, Layer, fold, run_in_place
from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server.audit.audit import Audit, make_audit
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.jsonl_store import JsonlStore
from axolotl_server.layers.deadline import DeadlineTable, validation
from axolotl_server.settings.policies import AuditSettings

TIME = "2026-11-16T05:00:00.000000Z"


class MemorySink(IAuditSink):
    """Keeps records in memory."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    def write(self, record: AuditRecord) -> None:
        self.records.append(record)

    @property
    def ends(self) -> list[AuditRecord]:
        """The records of ended calls."""
        return [record for record in self.records if record.event == "end"]


class Fickle(MemorySink):
    """A sink that fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.well = True
        self.opened = 0

    def open(self) -> None:
        self._check()
        self.opened += 1

    def write(self, record: AuditRecord) -> None:
        self._check()
        super().write(record)

    def _check(self) -> None:
        if not self.well:
            raise OSError("no space left")


def audit_into(sink: IAuditSink, **settings: Any) -> Audit:
    """Create an audit with one custom sink."""
    audit = make_audit(AuditSettings(**settings), [sink])
    assert audit is not None
    return audit


def audit_of(**settings: Any) -> Audit:
    """Create an audit from settings."""
    audit = make_audit(AuditSettings(**settings))
    assert audit is not None
    return audit


class Pipeline:
    """One tool behind the layers of a server."""

    def __init__(
        self,
        audit: Audit,
        tool: ITool[Any, Any],
        *,
        outer: Sequence[Layer] = (),
        inner: Sequence[Layer] = (),
        toolset: str | None = None,
    ) -> None:
        limits = Limits(timeout_seconds=30.0, max_concurrency=None, execution="loop", coerce_arguments=False)
        self.spec = ToolSpec.of(tool, limits, toolset)
        layers: list[Layer] = [audit.layer, *outer, validation, DeadlineTable().timeout, audit.layer.announce, *inner]
        self._invoke, _ = fold(layers, self.spec, run_in_place(self.spec))

    def call(self, arguments: Mapping[str, Any] | bytes = b"{}", principal: Principal = ANONYMOUS) -> Call:
        """Create a call for the current task."""
        raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        task = asyncio.current_task()
        assert task is not None
        return Call(1, principal=principal, spec=self.spec, raw=raw, task=task)

    async def run(self, arguments: Mapping[str, Any] | bytes = b"{}", principal: Principal = ANONYMOUS) -> Any:
        """Create and run a call."""
        return await self._invoke(self.call(arguments, principal))

    async def run_call(self, call: Call) -> Any:
        return await self._invoke(call)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read all records of a JSON lines file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def ends_in(path: Path) -> list[dict[str, Any]]:
    """Read the records of ended calls."""
    return [record for record in read_log(path) if record["event"] == "end"]


def record(number: int = 0, **fields: Any) -> AuditRecord:
    """Create a record with a unique number."""
    return AuditRecord(**{"time": TIME, "event": "end", "call_id": f"{number:016x}", "name": "echo", **fields})


def store_at(path: Path, key: str | None = None, **options: Any) -> JsonlStore:
    """Prepare a JSON lines file."""
    return JsonlStore(path, Hashing(key), **{"max_bytes": 1 << 30, **options})


def write_log(path: Path, count: int, key: str | None = None, **options: Any) -> list[bytes]:
    """Write a log with a number of records, and return the lines of the last file."""
    store = store_at(path, key, **options)
    store.open()
    for number in range(count):
        store.append([record(number)])
    store.close()
    return path.read_bytes().splitlines(keepends=True)
