"""Mixed calls while workers are killed: each call is answered or its connection fails, and it runs at most once."""

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.soak.fleet import Fleet
from benchmarks.wire import HANDSHAKE, STATELESS

_CALLERS = 8
_PATIENCE_SECONDS = 30.0
_TOOLS = ("quick", "quick", "slow", "threaded")
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_META = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}


@dataclass
class Outcome:
    """The outcome of all calls."""

    answered: set[str] = field(default_factory=set)
    broken: dict[str, str] = field(default_factory=dict)
    """Calls whose connection failed, by key, with the type of the failure."""
    wrong: dict[str, str] = field(default_factory=dict)
    """Calls with a wrong reply, by key."""
    killed: list[int] = field(default_factory=list)

    def faults(self, ledger: Path) -> list[str]:
        """Return all violations, given the file in which executions were recorded."""
        done = Counter(ledger.read_text(encoding="utf-8").split())
        found = [f"{key} got a wrong reply: {answer}" for key, answer in self.wrong.items()]
        found += [f"{key} ran {times} times" for key, times in done.items() if times > 1]
        found += [f"{key} was answered but never ran" for key in self.answered if not done[key]]
        found += [f"{key} found no server listening" for key, how in self.broken.items() if how == "ConnectError"]
        found += [f"{key} got no reply" for key, how in self.broken.items() if "Timeout" in how]
        return found


async def call_while_killing(fleet: Fleet, calls: int, *, sessions: bool, kills: int) -> Outcome:
    """Make mixed calls, with and without connection reuse and sessions, while random workers are killed."""
    outcome = Outcome()
    fatal = set(random.sample(range(calls), kills))
    killing: set[asyncio.Task[None]] = set()

    def keys() -> Iterator[int]:
        for key in range(calls):
            if key in fatal:
                killing.add(asyncio.ensure_future(_kill(fleet, outcome)))
            yield key

    shared = keys()
    await asyncio.gather(*(_Caller(fleet.url, outcome, number, sessions).run(shared) for number in range(_CALLERS)))
    await asyncio.gather(*killing)
    return outcome


async def _kill(fleet: Fleet, outcome: Outcome) -> None:
    """Kill one of the serving workers, if there is one."""
    workers = await asyncio.to_thread(fleet.serving)
    if workers:
        pid = random.choice(workers)
        outcome.killed.append(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class _Caller:
    """Makes one call after the other and never retries."""

    def __init__(self, url: str, outcome: Outcome, number: int, sessions: bool) -> None:
        self._url = url
        self._outcome = outcome
        self._keeps_connection = number % 2 == 0
        self._wants_session = sessions and number % 4 < 2
        self._session: dict[str, str] | None = None

    async def run(self, keys: Iterator[int]) -> None:
        """Call until there are no keys left."""
        limits = httpx2.Limits(max_keepalive_connections=1 if self._keeps_connection else 0)
        async with httpx2.AsyncClient(limits=limits, timeout=_PATIENCE_SECONDS, verify=False) as client:
            for key in keys:
                await self._call(client, f"key-{key}", random.choice(_TOOLS))

    async def _call(self, client: httpx2.AsyncClient, key: str, tool: str) -> None:
        try:
            if self._wants_session and self._session is None:
                self._session = await self._begin(client)
            reply = await self._send(client, key, tool)
        except httpx2.TransportError as error:
            self._outcome.broken[key] = type(error).__name__
            return
        answer = reply.json() if reply.status_code == 200 else {}
        content = answer.get("result", {}).get("content")
        if content == [{"type": "text", "text": key}]:
            self._outcome.answered.add(key)
        else:
            self._outcome.wrong[key] = f"{reply.status_code} {reply.text[:200]}"

    async def _send(self, client: httpx2.AsyncClient, key: str, tool: str) -> httpx2.Response:
        params: dict[str, Any] = {"name": tool, "arguments": {"key": key}}
        if self._session is not None:
            return await self._post(client, self._session, "tools/call", params)
        mirrored = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return await self._post(client, mirrored, "tools/call", {**params, "_meta": _META})

    async def _begin(self, client: httpx2.AsyncClient) -> dict[str, str]:
        """Perform the handshake, and repeat it if a worker was killed meanwhile."""
        hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
        while True:
            try:
                reply = await self._post(client, {}, "initialize", hello)
                session = {"Mcp-Session-Id": reply.headers["mcp-session-id"], "MCP-Protocol-Version": HANDSHAKE}
                await self._post(client, session, "notifications/initialized", None, identifier=None)
                return session
            except httpx2.TransportError:
                continue

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
