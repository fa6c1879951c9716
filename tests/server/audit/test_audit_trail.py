"""Calls whose records cannot be written, and records whose callers do not wait."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import Context, ITool, NoArguments, Refused, ToolAnnotations, ToolError
from axolotl_core.errors import ConfigurationError, InputRequired
from axolotl_core.layers import Call
from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server.audit.audit import Audit
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.records import describer
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.layers.audit import AuditLayer
from tests.support.audited_calls import Fickle, MemorySink, Pipeline, audit_of, record
from tests.support.servers.serving import until


class Slow(MemorySink):
    """A sink that waits until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = asyncio.Event()
        self.may = asyncio.Event()

    def write(self, record: AuditRecord) -> Awaitable[None]:  # type: ignore[override]
        return self._write(record)

    async def _write(self, record: AuditRecord) -> None:
        self.taken.set()
        await self.may.wait()
        self.records.append(record)


class Work(ITool[NoArguments, str]):
    """Counts its runs."""

    name = "work"
    annotations = ToolAnnotations(read_only=True)

    def __init__(self) -> None:
        self.runs = 0
        self.sink: Fickle | None = None

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.runs += 1
        if self.sink is not None:
            self.sink.well = False
        return "done"


def trail_of(
    *sinks: IAuditSink, on_failure: Any = "closed", timeout_seconds: float = 5.0, retry: float = 0.0
) -> AuditTrail:
    return AuditTrail(sinks, on_failure, timeout_seconds, retry)


def pipeline_of(trail: AuditTrail, tool: ITool[Any, Any]) -> Pipeline:
    layer = AuditLayer(trail, partial(describer, hashing=Hashing(None), redactor=lambda spec: None))
    return Pipeline(Audit(trail, layer), tool)


async def test_closed_rejects_before_the_code_runs() -> None:
    """With `closed`, no call runs while a sink fails; it is retried, and the gap is recorded first."""
    sink, work = Fickle(), Work()
    trail = trail_of(sink)
    pipeline = pipeline_of(trail, work)
    assert await pipeline.run() == "done"
    sink.well = False
    with pytest.raises(ToolError, match="could not be recorded") as withheld:
        await pipeline.run()
    assert not isinstance(withheld.value, Refused)
    assert withheld.value.meta == {"axolotl/reason": "audit_failed"}
    with pytest.raises(Refused, match="not executed") as refused:
        await pipeline.run()
    assert refused.value.meta is not None
    assert refused.value.meta["axolotl/reason"] == "audit_unavailable"
    assert (work.runs, trail.broken, trail.lost) == (2, True, 1)
    sink.well = True
    assert await pipeline.run() == "done"
    assert (work.runs, trail.broken) == (3, False)
    assert [(one.event, one.lost) for one in sink.records] == [("end", None), ("gap", 1), ("end", None)]


async def test_closed_withholds_a_result_without_record() -> None:
    """With `closed`, a call whose record could not be written returns an error."""
    sink, work = Fickle(), Work()
    work.sink = sink
    with pytest.raises(ToolError, match="was executed but could not be recorded"):
        await pipeline_of(trail_of(sink), work).run()
    assert work.runs == 1


async def test_open_runs_calls_and_counts_the_gap(caplog: pytest.LogCaptureFixture) -> None:
    """With `open`, calls run without records; the failure is logged once, and the gap is recorded later."""
    sink, work = Fickle(), Work()
    trail = trail_of(sink, on_failure="open")
    pipeline = pipeline_of(trail, work)
    sink.well = False
    for _ in range(5):
        assert await pipeline.run() == "done"
    assert (work.runs, trail.lost, trail.broken) == (5, 5, True)
    assert caplog.messages == ["Fickle is unavailable (OSError: no space left); audit records lost: 0"]
    sink.well = True
    assert await pipeline.run() == "done"
    assert caplog.messages[1:] == ["Fickle is available again; audit records lost in the meantime: 5"]
    assert [(one.event, one.lost) for one in sink.records] == [("gap", 5), ("end", None)]
    assert not trail.broken


async def test_a_failed_sink_is_not_used_between_retries() -> None:
    """Between two retries, records are not written."""
    sink = Fickle()
    trail = trail_of(sink, on_failure="open", retry=60.0)
    await pipeline_of(trail, Work()).run()
    sink.well = False
    await pipeline_of(trail, Work()).run()
    sink.well = True
    await pipeline_of(trail, Work()).run()
    assert (len(sink.records), trail.lost) == (1, 2)


@pytest.mark.parametrize("on_failure", ["open", "closed"])
async def test_a_failed_call_keeps_its_error(on_failure: str) -> None:
    """A failed call keeps its error even if it could not be recorded; a question is withheld."""
    sink = Fickle()

    class Failing(Work):
        error: BaseException = ToolError("no such order")

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            sink.well = False
            raise self.error

    failing = Failing()
    trail = trail_of(sink, on_failure=on_failure)
    with pytest.raises(ToolError, match="no such order"):
        await pipeline_of(trail, failing).run()
    sink.well, failing.error = True, InputRequired()
    with pytest.raises(ToolError if on_failure == "closed" else InputRequired):
        await pipeline_of(trail, failing).run()


async def test_a_start_that_cannot_be_recorded() -> None:
    """A tool that may be destructive does not run without a start record."""
    sink, work = Fickle(), Work()
    work.annotations = ToolAnnotations()
    trail = trail_of(sink)
    trail.open()
    sink.well = False
    with pytest.raises(Refused, match="not executed"):
        await pipeline_of(trail, work).run()
    assert work.runs == 0


async def test_a_sink_that_takes_too_long() -> None:
    """A sink that times out counts as failed."""
    sink = Slow()
    with pytest.raises(ToolError, match="could not be recorded"):
        await pipeline_of(trail_of(sink, timeout_seconds=0.01), Work()).run()
    trail = trail_of(sink, timeout_seconds=0.01, on_failure="open")
    assert await pipeline_of(trail, Work()).run() == "done"
    assert trail.broken


async def test_a_record_is_kept_though_the_call_is_stopped() -> None:
    """A slow sink finishes a record even if the caller has left."""
    sink = Slow()
    running = asyncio.ensure_future(pipeline_of(trail_of(sink), Work()).run())
    await sink.taken.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    sink.may.set()
    await until(lambda: len(sink.records) == 1)


async def test_a_call_that_is_abandoned_while_its_end_is_written() -> None:
    """The caller is answered when the record is stored, also if nobody can wait for it."""

    class Flushed(Slow):
        flushes = 0

        def flush(self, seconds: float) -> bool:
            self.flushes += 1
            return True

    async def run() -> None:
        calls.append(pipeline.call())
        await pipeline.run_call(calls[0])

    sink, calls = Flushed(), list[Call]()
    pipeline = pipeline_of(trail_of(sink), Work())
    running = asyncio.ensure_future(run())
    await sink.taken.wait()
    calls[0].abandon()
    assert sink.flushes == 1
    sink.may.set()
    await running
    assert [record.outcome for record in sink.records] == ["ok"]


async def test_records_that_cannot_wait_are_lost_while_a_sink_fails() -> None:
    """The record of an abandoned call is counted as lost if its sink fails."""
    sink = Fickle()
    sink.well = False
    trail = trail_of(sink, retry=60.0)
    for lost in (1, 2):
        trail.write_at_once(record())
        assert trail.lost == lost


async def test_records_go_to_every_sink() -> None:
    """Each sink gets each record, even if another sink fails."""
    good, bad = MemorySink(), Fickle()
    trail = trail_of(good, bad, on_failure="open")
    pipeline = pipeline_of(trail, Work())
    await pipeline.run()
    bad.well = False
    await pipeline.run()
    assert (len(good.records), len(bad.records)) == (2, 1)


async def test_sinks_are_opened_when_first_needed() -> None:
    """Sinks are opened at the first call, and opening is retried if it fails."""
    sink = Fickle()
    sink.well = False
    trail = trail_of(sink)
    pipeline = pipeline_of(trail, Work())
    assert sink.opened == 0
    with pytest.raises(Refused):
        await pipeline.run()
    sink.well = True
    await pipeline.run()
    await pipeline.run()
    assert sink.opened == 1


def test_a_log_that_cannot_be_opened_is_reported_at_startup(tmp_path: Path) -> None:
    """A server reports at its start that a log cannot be opened."""
    audit = audit_of(jsonl_path=tmp_path / "absent" / "audit.jsonl")
    with pytest.raises(ConfigurationError, match="absent"):
        audit.trail.open()
