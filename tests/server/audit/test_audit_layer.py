"""The audit layer: one record per call, written before the reply."""

import asyncio
import gc
import re
import weakref
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import (
    Context,
    Declined,
    Forbidden,
    ITool,
    NoArguments,
    Principal,
    Refused,
    ResourceNotFound,
    ToolAnnotations,
    ToolError,
    prompt,
    resource,
)
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InputRequired, Overloaded, QuotaExceeded, ToolNotFound, ToolTimeout
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.access import Decision, with_decision
from axolotl_core.protocol.wire import canonical_json
from axolotl_server import connect
from axolotl_server.audit import records
from axolotl_server.layers.concurrency import Bulkhead, ConcurrencyLayer
from tests.support.audited_calls import MemorySink, Pipeline, audit_into, audit_of, ends_in
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Echo, Probe, container_of

ALICE = Principal("alice", tenant="acme")
CANONICAL = b'{"text":"hi"}'


class Raising(ITool[NoArguments, str]):
    """Raises a given exception."""

    name = "raising"
    annotations = ToolAnnotations(read_only=True)

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        raise self._error


class Refusing(ILayer):
    """Rejects every call."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def refuse(call: Call) -> Any:
            raise self._error

        return refuse


class Stubborn(ITool[NoArguments, str]):
    """Ignores cancellation."""

    name = "stubborn"
    timeout_seconds = 0.05

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.ended = asyncio.Event()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        self.ended.set()
        return "done at last"


async def test_a_call_that_succeeds() -> None:
    """The record contains the caller, feature, times, arguments and outcome."""
    sink = MemorySink()
    pipeline = Pipeline(audit_into(sink), Echo(), toolset="texts")
    assert await pipeline.run(b'{ "text" : "hi" }', ALICE) == "hi"
    [record] = sink.ends
    assert (record.event, record.kind, record.name, record.toolset) == ("end", "tool", "echo", "texts")
    assert (record.subject, record.tenant, record.outcome, record.reason) == ("alice", "acme", "ok", None)
    assert record.digest == f"sha256:{sha256(CANONICAL).hexdigest()}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", record.time)
    assert re.fullmatch("[0-9a-f]{16}", record.call_id or "")
    assert record.duration_seconds == round(record.duration_seconds or -1, 6)
    assert record.queued_seconds == 0
    assert record.arguments is None


async def test_the_issuer_and_the_definition() -> None:
    """Records tell apart the same subject of two issuers, and two definitions of the same tool."""
    sink = MemorySink()
    other = Echo()
    other.description = "Another description."
    for tool in (Echo(), other):
        for issuer in (None, "https://id.example.com"):
            pipeline = Pipeline(audit_into(sink), tool)
            await pipeline.run(b'{"text":"hi"}', Principal("alice", issuer=issuer))
    assert [record.issuer for record in sink.ends] == [None, "https://id.example.com"] * 2
    first, second = (sink.ends[place].definition for place in (0, 2))
    assert re.fullmatch("sha256:[0-9a-f]{32}", first or "")
    assert first == sink.ends[1].definition != second


@pytest.mark.parametrize(
    ("error", "outcome", "reason", "rule"),
    [
        (ToolError("no such order"), "error", None, None),
        (ToolError("x", meta={"reason": "sold_out"}), "error", "sold_out", None),
        (ToolError("x", meta={"reason": ["no", "text"]}), "error", None, None),
        (Declined("cancel"), "error", "cancel", None),
        (ToolTimeout("x"), "timeout", None, None),
        (ResourceNotFound("x://y"), "error", "ResourceNotFound", None),
        (Forbidden("x", meta={"reason": "forbidden", "rule": "nights"}), "denied", "forbidden", "nights"),
        (
            with_decision(ToolNotFound("x"), Decision(False, "secret tools", "not hers")),
            "denied",
            "not hers",
            "secret tools",
        ),
        (Refused("x"), "denied", None, None),
        (QuotaExceeded("x", meta={"rule": "daily"}), "quota", None, "daily"),
        (Overloaded("x", 1.0), "overloaded", "overloaded", None),
        (ConnectionError("password=hunter2"), "failed", "builtins.ConnectionError", None),
        (SystemExit(3), "failed", "builtins.SystemExit", None),
        (InputRequired(), "input_required", None, None),
        (BaseExceptionGroup("x", [InputRequired(), InputRequired()]), "input_required", None, None),
        (BaseExceptionGroup("x", [InputRequired(), OSError()]), "failed", "builtins.BaseExceptionGroup", None),
        (asyncio.CancelledError(), "cancelled", None, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
async def test_a_call_that_raises(error: BaseException, outcome: str, reason: str | None, rule: str | None) -> None:
    """Each kind of failure has its own outcome; the reason is a fixed word, never a message."""
    sink = MemorySink()
    pipeline = Pipeline(audit_into(sink), Raising(error))
    with pytest.raises(type(error)):
        await pipeline.run()
    [record] = sink.records
    assert (record.outcome, record.reason, record.rule) == (outcome, reason, rule)
    assert "hunter2" not in str(record)


async def test_refusals_of_layers_are_recorded() -> None:
    """A rejection by an outer layer leaves a record, without a start record."""
    sink = MemorySink()
    pipeline = Pipeline(audit_into(sink), Echo(), outer=[Refusing(Forbidden("no"))])
    with pytest.raises(Forbidden):
        await pipeline.run({"text": 5})
    assert [(record.event, record.outcome) for record in sink.records] == [("end", "denied")]


async def test_invalid_arguments() -> None:
    """A call with invalid arguments is recorded with their digest but without values."""
    sink = MemorySink()
    pipeline = Pipeline(audit_into(sink, arguments="redacted"), Echo())
    with pytest.raises(ToolError):
        await pipeline.run({"text": 5, "token": "hunter2"})
    [record] = sink.records
    assert record.outcome == "invalid_arguments"
    assert record.digest is not None
    assert record.arguments is None


async def test_a_call_that_waits_for_a_place() -> None:
    """The record contains the time in the queue."""
    sink, probe = MemorySink(), Probe()
    places = ConcurrencyLayer(Bulkhead("The test", 1, queue_limit=1, queue_seconds=PATIENCE_SECONDS))
    pipeline = Pipeline(audit_into(sink), probe, inner=[places])
    first = asyncio.ensure_future(pipeline.run())
    await probe.started.wait()
    second = asyncio.ensure_future(pipeline.run())
    await asyncio.sleep(0)
    probe.release.set()
    await asyncio.gather(first, second)
    waits = [record.queued_seconds or 0 for record in sink.ends]
    assert waits[0] == 0 < waits[1]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (CancelReason.TIMEOUT, "timeout"),
        (CancelReason.CLIENT, "cancelled"),
        (CancelReason.DISCONNECT, "cancelled"),
        (CancelReason.SHUTDOWN, "cancelled"),
    ],
)
@pytest.mark.parametrize("heeds", [True, False])
async def test_a_call_that_is_stopped(reason: CancelReason, outcome: str, heeds: bool) -> None:
    """A stopped call is recorded as stopped, even if its code returns normally."""
    sink = MemorySink()

    class Deaf(Probe):
        async def execute(self, arguments: NoArguments, context: Context) -> str:
            try:
                return await super().execute(arguments, context)
            except asyncio.CancelledError:
                if heeds:
                    raise
                return "done all the same"

    probe = Deaf()
    pipeline = Pipeline(audit_into(sink), probe)

    async def run() -> None:
        stopped = pipeline.call()
        calls.append(stopped)
        await pipeline.run_call(stopped)

    calls: list[Call] = []
    running = asyncio.ensure_future(run())
    await probe.started.wait()
    calls[0].stop(reason)
    await asyncio.wait([running], timeout=PATIENCE_SECONDS)
    [record] = sink.ends
    assert (record.outcome, record.reason) == (outcome, reason.value)


@pytest.mark.parametrize("durability", ["write", "fsync"])
async def test_a_call_that_is_abandoned(durability: str, tmp_path: Path) -> None:
    """An abandoned call is recorded before its caller is answered, and the end of its code adds no record."""
    log, stubborn = tmp_path / "audit.jsonl", Stubborn()
    audit = audit_of(jsonl_path=log, durability=durability)
    async with connect(container_of(stubborn, layers=[audit.layer])) as client:
        assert (await client.call("stubborn")).is_error
        kept = len(ends_in(log))
        stubborn.release.set()
        await stubborn.ended.wait()
    audit.trail.close()
    [record] = ends_in(log)
    assert (record["outcome"], record["reason"]) == ("abandoned", "timeout")
    assert kept == 1


@pytest.mark.parametrize("annotations", [ToolAnnotations(), ToolAnnotations(read_only=True)])
async def test_arguments_are_digested_once(annotations: ToolAnnotations, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the end takes the digest and the shown arguments from the record of the start."""
    digested: list[bytes] = []

    def counted(raw: bytes) -> bytes:
        digested.append(raw)
        return canonical_json(raw)

    monkeypatch.setattr(records, "canonical_json", counted)
    sink, tool = MemorySink(), Echo()
    tool.annotations = annotations
    await Pipeline(audit_into(sink, durability="write"), tool).run(CANONICAL)
    assert digested == [CANONICAL]
    assert len({one.digest for one in sink.records}) == 1


async def test_start_and_end_of_a_tool_that_may_destroy() -> None:
    """A tool that may be destructive has a start record with the same id as its end record."""
    sink = MemorySink()
    seen: list[str] = []

    class Destroy(Echo):
        async def execute(self, arguments: Any, context: Context) -> str:
            seen.extend(record.event for record in sink.records)
            return ""

    await Pipeline(audit_into(sink), Destroy()).run({"text": "all"})
    start, end = sink.records
    assert seen == ["start"]
    assert (start.event, start.outcome, start.duration_seconds) == ("start", None, None)
    assert (start.call_id, start.digest) == (end.call_id, end.digest)


@pytest.mark.parametrize(
    ("annotations", "durability", "events"),
    [
        (ToolAnnotations(), "write", ["start", "end"]),
        (ToolAnnotations(destructive=True), "fsync", ["start", "end"]),
        (ToolAnnotations(destructive=False), "write", ["end"]),
        (ToolAnnotations(read_only=True), "write", ["end"]),
        (ToolAnnotations(read_only=True, destructive=True), "write", ["end"]),
    ],
)
async def test_which_tools_have_a_start(annotations: ToolAnnotations, durability: str, events: list[str]) -> None:
    """Tools without side effects have no start record."""
    sink = MemorySink()
    tool = Echo()
    tool.annotations = annotations
    await Pipeline(audit_into(sink, durability=durability), tool).run({"text": ""})
    assert [record.event for record in sink.records] == events


async def test_names_and_traces_of_requests() -> None:
    """A record contains the name as requested, and the trace context."""
    sink = MemorySink()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with connect(container_of(Echo(), layers=[audit_into(sink).layer])) as client:
        await client.request("tools/call", {"name": "ECHO", "arguments": {}, "_meta": {"traceparent": trace}})
        await client.call("echo")
    first, second = sink.records
    assert (first.name, first.requested, first.trace_id) == ("echo", "ECHO", "0af7651916cd43dd8448eb211c80319c")
    assert (second.requested, second.trace_id) == ("echo", None)


async def test_prompts_and_resources() -> None:
    """Prompts and resources are recorded too, without the URI, which may contain arguments."""

    @prompt
    async def poem(topic: str) -> str:
        return topic

    @resource("files://{name}")
    async def file(name: str) -> str:
        return name

    sink = MemorySink()
    container = container_of(Echo(), layers=[audit_into(sink).layer])
    container.prompts = providers.Object([poem])
    container.resources = providers.Object([file])
    async with connect(container) as client:
        await client.request("prompts/get", {"name": "poem", "arguments": {"topic": "hunter2"}})
        await client.read_resource("files://hunter2")
    assert [(record.kind, record.name, record.outcome) for record in sink.records] == [
        ("prompt", "poem", "ok"),
        ("resource", "files://{name}", "ok"),
    ]
    assert "hunter2" not in str(sink.records)


async def test_completions_are_not_recorded() -> None:
    """A prompt is recorded, and the completion of its arguments is not."""

    @prompt
    async def poem(topic: str) -> str:
        return "roses"

    poem.completes("topic")(lambda value: ["roses"])
    sink = MemorySink()
    container = container_of(Echo(), layers=[audit_into(sink).layer])
    container.prompts = providers.Object([poem])
    async with connect(container) as client:
        reference = {"type": "ref/prompt", "name": "poem"}
        params = {"ref": reference, "argument": {"name": "topic", "value": ""}}
        assert (await client.request("completion/complete", params))["completion"]["values"] == ["roses"]
        await client.request("prompts/get", {"name": "poem", "arguments": {"topic": "roses"}})
    assert [(record.kind, record.name) for record in sink.records] == [("prompt", "poem")]


async def test_digests_tell_arguments_apart() -> None:
    """Equal arguments have equal digests, and a key changes all digests."""
    sink = MemorySink()
    pipeline = Pipeline(audit_into(sink), Echo())
    keyed = Pipeline(audit_into(sink, key="a key of some length"), Echo())
    for one in (pipeline, keyed):
        for raw in (b'{"text":"a"}', b' {"text" : "\\u0061"} ', b'{"text":"b"}'):
            await one.run(raw)
    digests = [record.digest or "" for record in sink.ends]
    assert digests[0] == digests[1] != digests[2]
    assert digests[3] == digests[4] != digests[5]
    assert len(set(digests)) == 4
    assert [digest.partition(":")[0] for digest in digests] == ["sha256"] * 3 + ["hmac-sha256"] * 3


async def test_ended_calls_are_released() -> None:
    """Ended calls are released without garbage collection."""

    class Weak(Echo):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        async def execute(self, arguments: Any, context: Context) -> str:
            self.seen.append(weakref.ref(arguments))
            return ""

    tool = Weak()
    pipeline = Pipeline(audit_into(MemorySink()), tool)
    gc.collect()
    gc.disable()
    try:
        await pipeline.run({"text": "a"})
        assert tool.seen[0]() is None
    finally:
        gc.enable()
