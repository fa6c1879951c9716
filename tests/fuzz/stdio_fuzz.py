"""Fuzzing over stdio: sends mutated lines to a server process, and judges the replies."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from tests.fuzz.corpus import STATELESS, answers_to, initialize, requests_of
from tests.fuzz.judging import Key, Owed, Verdict, faults_of, is_answer, key_of, leaked, verdict_of, what_is_owed
from tests.fuzz.mutations import mutate_structure
from tests.fuzz.probes import Probe
from tests.fuzz.state import Fault, KnownValues

_PATIENCE_SECONDS: Final = 20.0
_LINGER_SECONDS: Final = 2.0
_BLINK_SECONDS: Final = 0.05
_FEATURES: Final = (b"/call", b"/get", b"/read", b"/complete", b"/result", b"/listen")
_WINDOW: Final = 16
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


class _Line:
    """A line that was sent, and the replies to it."""

    def __init__(self, probe: Probe, data: bytes, whole: bool) -> None:
        self.probe = probe
        self.data = data
        self.whole = whole
        """Whether the line is the whole message of the probe."""
        self.owed = what_is_owed(data)
        self.replies: list[Any] = []
        self.acknowledged = False


class _Window:
    """Lines that are sent at once. At most one of them is not a request with an ID of its own."""

    def __init__(self, barrier: str) -> None:
        self.barrier = key_of(barrier)
        self.requests: dict[Key, _Line] = {}
        self.other: _Line | None = None
        self.passed = False

    def add(self, line: _Line) -> bool:
        """Add a line, unless its replies could not be told from those of others."""
        if line.owed.asks:
            if line.owed.key in self.requests:
                return False
            self.requests[line.owed.key] = line
            return True
        if self.other is not None:
            return False
        self.other = line
        return True

    @property
    def lines(self) -> list[_Line]:
        return [*self.requests.values(), *([] if self.other is None else [self.other])]

    def take(self, reply: Any) -> None:
        """Assign a reply to the line that it answers."""
        key = key_of(reply.get("id")) if isinstance(reply, dict) else None
        if key == self.barrier:
            self.passed = True
        elif key in self.requests:
            self.requests[key].replies.append(reply)
        elif self.other is not None:
            self.other.replies.append(reply)

    @property
    def complete(self) -> bool:
        """Whether everything that must arrive has arrived."""
        cancelled = None if self.other is None else self.other.owed.cancels
        waits = any(not line.replies for key, line in self.requests.items() if key != cancelled)
        return self.passed and not waits

    @property
    def patience_seconds(self) -> float:
        """How long to wait for such a reply: only features take their time."""
        if self.other is None or self.other.owed.least:
            return _PATIENCE_SECONDS
        return _LINGER_SECONDS if any(name in self.other.data for name in _FEATURES) else _BLINK_SECONDS

    @property
    def lingers(self) -> bool:
        """Whether a reply may follow later than those to all other messages."""
        other = self.other
        if other is None or other.replies or other.acknowledged:
            return False
        begins, asks = other.data.lstrip()[:1], b'"id"' in other.data and b'"method"' in other.data
        return other.owed.least > 0 or begins == b"[" or asks


class StdioFuzz:
    """A server process whose client has negotiated one revision."""

    def __init__(self, process: asyncio.subprocess.Process, revision: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._revision = revision
        self._values = KnownValues()
        self._barriers = 0
        self._random = Random(0)
        self.faults: list[Fault] = []
        self.verdicts: dict[int, Verdict] = {}

    async def shake_hands(self) -> None:
        """Negotiate the revision, unless it needs no handshake."""
        if self._revision != STATELESS:
            hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(self._revision)}
            self._say(json.dumps(hello).encode())
            await self._stdout.readline()
            self._say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def play(self, probes: list[Probe]) -> None:
        """Send probes, several at once."""
        self.verdicts.clear()
        waiting = [line for probe in probes for line in self._lines(probe)]
        while waiting:
            window, left = self._next_window(), []
            for place, line in enumerate(waiting):
                if len(window.lines) >= _WINDOW:
                    left += waiting[place:]
                    break
                if not window.add(line):
                    left.append(line)
            waiting = left
            await self._play(window)

    async def send(self, line: bytes) -> list[Any]:
        """Send one line, for a person to look at the replies."""
        window = self._next_window()
        window.add(_Line(Probe(0, self._revision, line, 0, framed=False), line, whole=True))
        await self._play(window)
        return [reply for line in window.lines for reply in line.replies]

    def _lines(self, probe: Probe) -> Iterator[_Line]:
        pieces = self._values.fill(probe.revision, probe.body).split(b"\n")
        for piece in pieces:
            yield _Line(probe, piece, whole=len(pieces) == 1)

    def _next_window(self) -> _Window:
        self._barriers += 1
        return _Window(f"barrier-{self._barriers}")

    async def _play(self, window: _Window) -> None:
        for line in window.lines:
            self._random = Random(line.probe.seed)
            self._say(line.data)
        self._say(self._barrier(f"barrier-{self._barriers}"))
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._stdin.drain()
                while not window.complete:
                    self._hear(window, await self._stdout.readline())
            await self._linger(window)
        except TimeoutError:
            for line in window.lines:
                if not line.replies:
                    self._fault(line, "no reply in time")
        for line in window.lines:
            self._judge(line, window)

    async def _linger(self, window: _Window) -> None:
        """Wait a moment for a reply that may come or not."""
        try:
            async with asyncio.timeout(window.patience_seconds):
                while window.lingers:
                    self._hear(window, await self._stdout.readline())
        except TimeoutError:
            if window.other is None or window.other.owed.least:
                raise

    def _barrier(self, identifier: str) -> bytes:
        if self._revision != STATELESS:
            return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": "ping"}).encode()
        [discover] = [one for one in requests_of(STATELESS) if one["method"] == "server/discover"]
        return json.dumps({"jsonrpc": "2.0", **discover, "id": identifier}).encode()

    def _hear(self, window: _Window, data: bytes) -> None:
        if not data:
            raise TimeoutError  # the process has ended
        message = json.loads(data)
        if leaked(data) and window.lines:
            self._fault(window.lines[0], "a reply to one of 16 messages contains a secret")
        if isinstance(message, list) or "method" not in message:
            window.take(message)
        elif "id" in message:
            self._answer(message)
        elif message["method"] == "notifications/subscriptions/acknowledged" and window.other is not None:
            window.other.acknowledged = True
            cancelled = {"requestId": message["params"]["_meta"][_SUBSCRIPTION]}
            self._say(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}).encode())

    def _answer(self, question: Mapping[str, Any]) -> None:
        """Send a mutated answer, and then a valid one in case it was not accepted."""
        answer = answers_to(question)
        mutated = mutate_structure(answer, self._random, 1)
        if is_answer(mutated):  # anything else would be answered in turn
            self._say(mutated)
        self._say(json.dumps(answer).encode())

    def _judge(self, line: _Line, window: _Window) -> None:
        cancelled = None if window.other is None else window.other.owed.cancels
        owed = Owed(0, 1, line.owed.keys) if line.owed.asks and line.owed.key == cancelled else line.owed
        for fault in faults_of(line.replies, owed):
            self._fault(line, fault)
        for reply in line.replies:
            self._values.learn(line.probe.revision, reply)
        if line.whole and owed is line.owed:
            verdict = ("listening",) if line.acknowledged else verdict_of(line.replies)
            self.verdicts[line.probe.number] = verdict

    def _fault(self, line: _Line, text: str) -> None:
        reply = json.dumps(line.replies).encode() if line.replies else b""
        self.faults.append(Fault("stdio", line.probe.number, line.probe.revision, line.data, text, reply))

    def _say(self, line: bytes) -> None:
        self._stdin.write(line + b"\n")
