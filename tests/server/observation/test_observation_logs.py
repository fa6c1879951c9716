"""JSON logs: one line per record, with the call and without secrets."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import Principal, resource, tool
from axolotl_core.policies.audit import Sensitive
from axolotl_server.observation.json_log import JsonFormatter
from axolotl_server.observation.tracebacks import LimitedTracebackHandler, TracebackLimit
from tests.support.endless_tools import Stuck
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.servers.observed_server import SECRET, Telemetry
from tests.support.tools import container_of, crash, refuse

JSON: dict[str, Any] = {"log": {"format": "json"}}
BODY = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ADA = Principal("ada", tenant="acme", claims={"token": SECRET})

log = logging.getLogger("acme.tools")


@tool
async def speak(word: str) -> str:
    """Log something of its own."""
    log.info("speaking")
    return word


@tool(execution="thread")
def speak_in_thread(word: str) -> str:
    """Log from a thread."""
    log.info("speaking")
    return word


@tool
async def fail(word: Annotated[str, Sensitive]) -> str:
    """Fail with an argument in the error."""
    raise LookupError


@resource("note://{number}")
async def note(number: str) -> str:
    """Log something of its own."""
    log.info("reading")
    return "note"


def everything() -> Any:
    return container_with((speak, speak_in_thread, fail, refuse, crash), (), (note,))


@pytest.fixture
def stream(caplog: pytest.LogCaptureFixture) -> Iterator[io.StringIO]:
    """Log like a server with JSON logs."""
    stream = io.StringIO()
    handler = LimitedTracebackHandler(stream, TracebackLimit())
    handler.setFormatter(JsonFormatter(subject=True))
    root = logging.getLogger()
    root.addHandler(handler)
    caplog.set_level(logging.DEBUG)
    yield stream
    root.removeHandler(handler)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines() if '"asyncio"' not in line]


def formatted(message: str, *arguments: object, **more: Any) -> str:
    record = logging.LogRecord("sample", logging.INFO, "file", 1, message, arguments, None)
    vars(record).update(more)
    return JsonFormatter().format(record)


def test_fields() -> None:
    """A line has the time in UTC, the level, the logger and the message."""
    line = json.loads(formatted("it is %s", "late", created=0.25))
    assert line == {"time": "1970-01-01T00:00:00.250000Z", "level": "info", "logger": "sample", "message": "it is late"}


@given(st.text(st.characters(), max_size=50))
def test_one_line_whatever_is_in_it(text: str) -> None:
    """Any text stays on one line in printable ASCII, and can be parsed."""
    line = formatted("%s", text)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"] == text


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, 0x85, 0x9B, 0x2028, 0x2029, 0x202E])
def test_controls(code: int) -> None:
    """Control characters are escaped in messages, tracebacks and logger names."""
    text = f"a{chr(code)}b"
    try:
        raise ValueError(text)
    except ValueError as error:
        line = formatted("%s", text, name=text, exc_info=(type(error), error, error.__traceback__))
    assert chr(code) not in line.replace(" ", "")
    assert text in json.loads(line)["exception"]


async def test_a_tool_need_not_say_which_call_it_is(stream: io.StringIO) -> None:
    """Log lines of a running call name the call, also from threads."""
    async with conversing(everything(), settings=JSON) as host:
        peer = Peer(host, principal=ADA)
        await peer.ask("tools/call", {"name": "speak", "arguments": {"word": SECRET}}, id="r-1", traceparent=BODY)
        await peer.ask("tools/call", {"name": "speak_in_thread", "arguments": {"word": SECRET}}, id=2)
        await peer.ask("resources/read", {"uri": f"note://{SECRET}"}, id=3)
        await peer.close()
        log.info("nobody")
    first, second, third, last = (line for line in lines(stream) if line["logger"] == "acme.tools")
    for line in (first, second, third, last):
        del line["time"], line["level"], line["logger"]
    called = {"kind": "tool", "subject": "ada"}
    traced = {"trace_id": BODY.split("-")[1]}
    assert first == {"message": "speaking", "name": "speak", "request_id": "r-1", **called, **traced}
    assert second == {"message": "speaking", "name": "speak_in_thread", "request_id": "2", **called}
    assert third == {
        "message": "reading",
        "kind": "resource",
        "name": "note://{number}",
        "request_id": "3",
        "subject": "ada",
    }
    assert last == {"message": "nobody"}
    assert SECRET not in stream.getvalue()


async def test_a_failure_names_its_call(stream: io.StringIO) -> None:
    """A hidden failure is logged with its reference and its traceback."""
    async with conversing(everything(), settings=JSON) as host:
        reply = await Peer(host).ask("tools/call", {"name": "crash", "arguments": {"word": "boom"}}, id=9)
    [line] = [line for line in lines(stream) if line["level"] == "error"]
    assert line["reference"] == reply["result"]["_meta"]["axolotl/reference"]
    assert (line["kind"], line["name"], line["request_id"]) == ("tool", "crash", "9")
    assert "ValueError: boom" in line["exception"]


async def test_secrets_stay_out(stream: io.StringIO) -> None:
    """Arguments, ToolError texts and claims do not appear in the log."""
    async with conversing(everything(), settings={**JSON, "log_level": "debug"}) as host:
        peer = Peer(host, principal=ADA)
        for name in ("speak", "fail", "refuse", SECRET):
            await peer.ask("tools/call", {"name": name, "arguments": {"word": SECRET}})
            await peer.ask("tools/call", {"name": name, "arguments": {"word": [SECRET]}})
        await peer.ask(SECRET)
        await peer.ask("resources/read", {"uri": f"{SECRET}://x"})
        await peer.close()
    assert lines(stream)
    assert SECRET not in stream.getvalue()


async def test_code_that_goes_on_names_its_call(stream: io.StringIO) -> None:
    """The warning about abandoned code names its call."""
    stuck = Stuck()
    async with conversing(container_of(stuck), settings=JSON) as host:
        await Peer(host).ask("tools/call", {"name": "stuck"}, id="s")
        stuck.release.set()
        await stuck.ended.wait()
    [line] = [line for line in lines(stream) if "still running" in line["message"]]
    assert (line["level"], line["name"], line["request_id"]) == ("warning", "stuck", "s")


async def test_lines_name_the_span(stream: io.StringIO, telemetry: Telemetry) -> None:
    """With tracing, log lines name their span."""
    async with conversing(everything(), settings={**JSON, "telemetry": {"traces": True}}) as host:
        await Peer(host).ask("tools/call", {"name": "speak", "arguments": {"word": "a"}})
    context = telemetry.span("tools/call speak").context
    [line] = [line for line in lines(stream) if line["logger"] == "acme.tools"]
    assert context is not None
    assert (line["trace_id"], line["span_id"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")


class TestTracebacks:
    """Repeated tracebacks are limited."""

    @pytest.fixture
    def clock(self) -> list[float]:
        return [100.0]

    @pytest.fixture
    def handler(self, clock: list[float]) -> LimitedTracebackHandler:
        return LimitedTracebackHandler(io.StringIO(), TracebackLimit(clock=lambda: clock[0]))

    def write(
        self, handler: LimitedTracebackHandler, error: Exception, logger: str = "axolotl", call: Any = None
    ) -> list[str]:
        """Log a failure and return its lines."""
        try:
            raise error
        except type(error):
            said = logging.getLogger(logger).makeRecord(logger, logging.ERROR, "f", 1, "it failed", (), _current())
        if call is not None:
            said.axolotl_call = call
        return handler.format(said).splitlines()

    def test_one_in_a_while(self, handler: LimitedTracebackHandler, clock: list[float]) -> None:
        """Repeated failures of the same type have one line with a count, until the interval has passed."""
        assert self.write(handler, ValueError("a"))[-1] == "ValueError: a"
        expected = "it failed: ValueError (traceback omitted, {} since the last one shown)"
        for count in (1, 2, 3):
            assert self.write(handler, ValueError("a")) == [expected.format(count)]
        clock[0] += 9.9
        assert self.write(handler, ValueError("a")) == [expected.format(4)]
        clock[0] += 0.1
        assert self.write(handler, ValueError("a"))[-1] == "ValueError: a"
        assert self.write(handler, ValueError("a")) == [expected.format(1)]

    def test_each_type_for_itself(self, handler: LimitedTracebackHandler) -> None:
        """Another exception type has its own traceback."""
        self.write(handler, ValueError("a"))
        assert self.write(handler, KeyError("a"))[-1] == "KeyError: 'a'"

    def test_loggers_of_others_are_left_alone(self, handler: LimitedTracebackHandler) -> None:
        """Records of other loggers always have their traceback."""
        for _ in range(3):
            assert self.write(handler, ValueError("a"), "acme")[-1] == "ValueError: a"

    async def test_each_tool_for_itself(self, stream: io.StringIO) -> None:
        """Each tool has its own traceback; repeated failures have one line with a reference."""
        async with conversing(everything(), settings=JSON) as host:
            peer = Peer(host)
            for name in ("crash", "crash", "fail"):
                await peer.ask("tools/call", {"name": name, "arguments": {"word": "x"}})
            await peer.close()
        first, second, other = (line for line in lines(stream) if line["level"] == "error")
        assert "exception" in first
        assert "exception" in other
        assert "exception" not in second
        assert second["reference"] in second["message"]
        assert second["message"].endswith(": ValueError (traceback omitted, 1 since the last one shown)")

    def test_memory_is_bounded(self, clock: list[float]) -> None:
        """The number of remembered types is limited."""
        tracebacks = TracebackLimit(clock=lambda: clock[0])
        handler = LimitedTracebackHandler(io.StringIO(), tracebacks)
        for number in range(1500):
            self.write(handler, type(f"Error{number}", (Exception,), {})())
        assert len(tracebacks._shown) <= 1000


def _current() -> Any:
    import sys

    return sys.exc_info()
