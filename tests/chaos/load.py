"""Calls under load: each is answered, refused with a hint or loses its connection, and runs at most once."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, Self

import httpx2

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_HANDSHAKE_REVISION, LATEST_STATELESS_REVISION

HANDSHAKE: Final = LATEST_HANDSHAKE_REVISION.name
STATELESS: Final = LATEST_STATELESS_REVISION.name
PATIENCE_SECONDS: Final = 30.0
TOOLS: Final = ("quick", "quick", "slow", "threaded")
_CALLERS: Final = 8
_ATTEMPTS: Final = 400
_PAUSE_SECONDS: Final = 0.05
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_HINTS: Final = {"axolotl/retryAfterMs", "axolotl/reference", "axolotl/reason"}
_META: Final = {PROTOCOL_VERSION_KEY: STATELESS, CLIENT_CAPABILITIES_KEY: {}}


@dataclass
class Outcome:
    """What came of the calls, by key."""

    answered: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """Calls that were refused with a reason and a hint."""
    broken: dict[str, str] = field(default_factory=dict)
    """Calls whose connection failed, with the type of the failure."""
    wrong: dict[str, str] = field(default_factory=dict)
    """Calls with another reply."""

    refusals: int = 0
    """How often calls were refused, those that were repeated included."""

    @property
    def made(self) -> int:
        """The number of calls that have ended."""
        return len(self.answered) + len(self.refused) + len(self.broken) + len(self.wrong)

    def note(self, key: str, kind: str, text: str) -> None:
        """Note what came of a call."""
        if kind == "answered":
            self.answered.add(key)
        else:
            {"refused": self.refused, "broken": self.broken, "wrong": self.wrong}[kind][key] = text

    def faults(self, ledger: Path, *, may_be_closed: bool = False) -> list[str]:
        """Return all violations, given the file in which executions were recorded."""
        done = Counter(ledger.read_text(encoding="utf-8").split())
        found = [f"{key} got a wrong reply: {answer}" for key, answer in self.wrong.items()]
        found += [f"{key} ran {times} times" for key, times in done.items() if times > 1]
        found += [f"{key} was answered but never ran" for key in self.answered if not done[key]]
        found += [f"{key} got no reply" for key, how in self.broken.items() if "Timeout" in how]
        if not may_be_closed:
            found += [f"{key} found no server listening" for key, how in self.broken.items() if how == "ConnectError"]
        return found

    def __str__(self) -> str:
        lost = ", ".join(f"{number} {how}" for how, number in sorted(Counter(self.broken.values()).items()))
        counts = f"{len(self.answered):,} answered, {len(self.refused):,} refused, {len(self.broken):,} lost"
        return f"{counts} ({lost})" if lost else counts


class Load:
    """Callers with and without connection reuse and sessions, which call until the block ends."""

    def __init__(
        self, url: str, seed: int = 1, *, sessions: bool = False, tools: Sequence[str] = TOOLS, prefix: str = "key"
    ) -> None:
        self.outcome = Outcome()
        self._prefix = prefix
        self._changed = asyncio.Condition()
        self._ends = False
        self._keys = count()
        self._callers = [Caller(url, Random(f"{seed}/{n}"), n, sessions=sessions, tools=tools) for n in range(_CALLERS)]
        self._running: asyncio.Task[Any]

    async def __aenter__(self) -> Self:
        self._running = asyncio.ensure_future(asyncio.gather(*(self._call(caller) for caller in self._callers)))
        return self

    async def __aexit__(self, *reason: object) -> None:
        self._ends = True
        await self._running

    async def more(self, calls: int, what: Literal["made", "answered", "refusals"] = "made") -> None:
        """Wait until more calls have ended in some way."""
        wanted = self._number(what) + calls
        async with asyncio.timeout(PATIENCE_SECONDS * 2), self._changed:
            await self._changed.wait_for(lambda: self._number(what) >= wanted)

    def _number(self, what: str) -> int:
        found = getattr(self.outcome, what)
        return found if isinstance(found, int) else len(found)

    async def _call(self, caller: "Caller") -> None:
        async with caller.client() as client:
            for key in self._take():
                await caller.call(client, f"{self._prefix}-{key}", self.outcome, self._notify)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _take(self) -> Iterator[int]:
        while not self._ends:
            yield next(self._keys)


class Caller:
    """Makes one call after the other. Only idempotent calls are repeated."""

    def __init__(self, url: str, random: Random, number: int, *, sessions: bool, tools: Sequence[str]) -> None:
        self._url = url
        self._random = random
        self._tools = tools
        self._keeps_connection = number % 2 == 0
        self._wants_session = sessions and number % 4 < 2
        self._session: dict[str, str] | None = None

    def client(self) -> httpx2.AsyncClient:
        """Make a client that keeps its connection or not."""
        limits = httpx2.Limits(max_keepalive_connections=1 if self._keeps_connection else 0)
        return httpx2.AsyncClient(limits=limits, timeout=PATIENCE_SECONDS, verify=False)

    async def call(
        self, client: httpx2.AsyncClient, key: str, outcome: Outcome, notify: Callable[[], Awaitable[None]]
    ) -> None:
        """Make a call, and note what came of it."""
        tool = self._random.choice(self._tools)
        for attempt in range(_ATTEMPTS if tool == "once" else 1):
            if attempt:
                await asyncio.sleep(_PAUSE_SECONDS)  # sleeps: as a client does before it tries again
            kind, text = await self._try(client, key, tool)
            outcome.refusals += kind == "refused"
            await notify()
            if kind in ("answered", "wrong"):
                break
        outcome.note(key, kind, text)
        await notify()

    async def _try(self, client: httpx2.AsyncClient, key: str, tool: str) -> tuple[str, str]:
        try:
            if self._wants_session and self._session is None:
                self._session = await self._begin(client)
                if self._session is None:
                    return "refused", "no session"
            reply = await self._send(client, key, tool)
        except httpx2.TransportError as error:
            return "broken", type(error).__name__
        return self._judge(reply, key)

    def _judge(self, reply: httpx2.Response, key: str) -> tuple[str, str]:
        if reply.status_code == 404 and self._session is not None:
            self._session = None
            return "refused", "the session has ended"
        if reply.status_code == 503 and "retry-after" in reply.headers:
            return "refused", reply.text
        answer = reply.json() if reply.status_code == 200 else {}
        result = answer.get("result", {})
        if result.get("content") == [{"type": "text", "text": key}]:
            return "answered", ""
        if result.get("isError") and _HINTS & set(result.get("_meta", {})):
            return "refused", str(result["content"])
        return "wrong", f"{reply.status_code} {reply.text[:200]}"

    async def _send(self, client: httpx2.AsyncClient, key: str, tool: str) -> httpx2.Response:
        params: dict[str, Any] = {"name": tool, "arguments": {"key": key}}
        if self._session is not None:
            return await self._post(client, self._session, "tools/call", params)
        mirrored = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return await self._post(client, mirrored, "tools/call", {**params, "_meta": _META})

    async def _begin(self, client: httpx2.AsyncClient) -> dict[str, str] | None:
        """Perform the handshake; None if the server has no place for sessions now."""
        hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "chaos", "version": "1"}}
        reply = await self._post(client, {}, "initialize", hello)
        if "mcp-session-id" not in reply.headers:
            return None
        session = {"Mcp-Session-Id": reply.headers["mcp-session-id"], "MCP-Protocol-Version": HANDSHAKE}
        done = await self._post(client, session, "notifications/initialized", None, identifier=None)
        return session if done.status_code == 202 else None

    async def _post(
        self,
        client: httpx2.AsyncClient,
        headers: Mapping[str, str],
        method: str,
        params: Mapping[str, Any] | None,
        identifier: int | None = 1,
    ) -> httpx2.Response:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if identifier is not None:
            message |= {"id": identifier, "params": params}
        return await client.post(self._url, content=json.dumps(message), headers={**_HEADERS, **headers})
