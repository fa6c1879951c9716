"""The durability of a record when its caller is answered: written or synced."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_core.policies.audit import AuditRecord
from axolotl_server.audit.audit import make_audit
from axolotl_server.audit.jsonl_store import GroupSink, JsonlStore
from axolotl_server.audit.log_reading import verify
from axolotl_server.settings.policies import AuditSettings
from tests.support.audited_calls import Pipeline, audit_of, ends_in, read_log, record
from tests.support.servers.serving import PATIENCE_SECONDS, until


class Holding(JsonlStore):
    """A store whose writes wait until they are released."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.groups: list[list[AuditRecord]] = []
        self.syncs = 0
        self.error: Exception | None = None
        self.closed = False

    def open(self) -> None:
        """Do nothing."""

    def append(self, records: Sequence[AuditRecord]) -> None:
        assert self.may.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        self.groups.append(list(records))

    def sync(self) -> None:
        self.syncs += 1

    def close(self) -> None:
        self.closed = True


class Work(ITool[NoArguments, str]):
    name = "work"
    annotations = ToolAnnotations(read_only=True)

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "done"


async def test_groups_share_a_wait_for_the_disk() -> None:
    """Records that arrive during a write are written together, and each waits for its own group."""
    store = Holding()
    sink = GroupSink(store)
    sink.open()
    first = sink.write(record(0))
    await until(lambda: sink._busy)
    others = [sink.write(record(number)) for number in range(1, 10)]
    store.may.set()
    await asyncio.gather(first, *others)
    sink.close()
    assert [len(group) for group in store.groups] == [1, 9]
    assert (store.syncs, store.closed) == (2, True)


async def test_a_group_that_fails_fails_for_all() -> None:
    """Every record of a failed group gets the error, and later groups are tried again."""
    store = Holding()
    store.error = OSError("no space left")
    store.may.set()
    sink = GroupSink(store)
    sink.open()
    answers = await asyncio.gather(sink.write(record(1)), sink.write(record(2)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [OSError, OSError]
    store.error = None
    await sink.write(record(3))
    sink.close()
    assert [one.call_id for group in store.groups for one in group] == [f"{3:016x}"]


async def test_the_queue_of_the_thread_is_bounded() -> None:
    """When the queue of the thread is full, calls wait."""
    store = Holding()
    sink = GroupSink(store, capacity=2)
    sink.open()
    first = asyncio.ensure_future(sink.write(record(0)))
    await until(lambda: sink._busy)
    others = [asyncio.ensure_future(sink.write(record(number))) for number in range(1, 8)]
    await until(lambda: len(sink._room) == 5)
    assert len(sink._queue) == 2
    store.may.set()
    await asyncio.gather(first, *others)
    sink.close()
    assert max(len(group) for group in store.groups) <= 2


async def test_closing_writes_queued_records() -> None:
    """Closing writes all queued records first."""
    store = Holding()
    sink = GroupSink(store)
    sink.open()
    waiting = [asyncio.ensure_future(sink.write(record(number))) for number in range(3)]
    await asyncio.sleep(0)
    store.may.set()
    sink.close()
    await asyncio.gather(*waiting)
    assert sum(map(len, store.groups)) == 3


@pytest.mark.parametrize("durability", ["write", "fsync"])
async def test_every_durability(durability: str, tmp_path: Path) -> None:
    """With every durability, all records are written when the server stops."""
    path = tmp_path / "audit.log"
    audit = audit_of(jsonl_path=path, durability=durability, stderr=True)
    audit.trail.open()
    pipeline = Pipeline(audit, Work())
    await asyncio.gather(*(pipeline.run() for _ in range(20)))
    audit.trail.close()
    report = verify(path)
    assert (report.fault, report.records) == (None, 22)


async def test_a_record_is_written_before_the_reply(tmp_path: Path) -> None:
    """Unless records are buffered, a record is in the file when its call returns."""
    path = tmp_path / "audit.jsonl"
    for durability in ("write", "fsync"):
        audit = audit_of(jsonl_path=path, durability=durability)
        before = len(ends_in(path)) if path.exists() else 0
        await Pipeline(audit, Work()).run()
        assert len(ends_in(path)) == before + 1
        audit.trail.close()


async def test_records_on_the_standard_error_stream(capfd: pytest.CaptureFixture[str]) -> None:
    """On standard error, a record is one line of JSON."""
    await Pipeline(audit_of(stderr=True), Work()).run()
    [line] = capfd.readouterr().err.splitlines()
    assert '"event":"end"' in line
    assert '"outcome":"ok"' in line


def test_without_a_sink_there_is_no_audit() -> None:
    """Without a sink there is no audit."""
    assert make_audit(AuditSettings()) is None


def test_a_short_key_is_refused() -> None:
    """A short key is rejected."""
    with pytest.raises(ValueError, match="at least 16"):
        AuditSettings(key="short")  # type: ignore[arg-type]


def test_a_log_of_no_calls(tmp_path: Path) -> None:
    """A log without calls contains only its opening and closing records."""
    audit = audit_of(jsonl_path=tmp_path / "audit.jsonl")
    audit.trail.open()
    audit.trail.close()
    assert [one["event"] for one in read_log(tmp_path / "audit.jsonl")] == ["open", "close"]
