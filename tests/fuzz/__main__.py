"""The command `python -m tests.fuzz`: mutated messages over HTTP and stdio, and what they break."""

import argparse
import asyncio
import base64
import logging
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import uvloop

from tests.fuzz.both_paths import both_paths
from tests.fuzz.corpus import HANDSHAKES, STATELESS
from tests.fuzz.differences import is_documented
from tests.fuzz.http_fuzz import HttpFuzz
from tests.fuzz.probes import Probe, make_probe
from tests.fuzz.servers import FuzzedServer, start
from tests.fuzz.state import Fault
from tests.fuzz.stdio_fuzz import StdioFuzz

_BLOCK: Final = 1000
_WARM_BLOCKS: Final = 4
_ALLOWED_GROWTH: Final = 48 << 20
"""How much the memory of a server may grow after the first blocks; caches fill up slowly."""
_MOST_FAULTS: Final = 20
_MESSAGES_PER_CONVERSATION: Final = 50
"""How many messages are sent for each conversation that compares the two paths of an HTTP server."""


class Run:
    """One run over all transports."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._servers: list[FuzzedServer] = []
        self._warm: list[int] = []
        self._blocks = 0
        self.faults: list[str] = []

    async def start(self, stack: AsyncExitStack, connections: int) -> None:
        """Start one HTTP server, and one stdio server for each revision."""
        self._http_server = await stack.enter_async_context(start("http"))
        self._servers.append(self._http_server)
        self._stdio: dict[str, StdioFuzz] = {}
        for revision in (*HANDSHAKES, STATELESS):
            server = await stack.enter_async_context(start("stdio"))
            self._servers.append(server)
            self._stdio[revision] = StdioFuzz(server.process, revision)
            await self._stdio[revision].shake_hands()
        self._http = HttpFuzz(await self._http_server.port(), connections)

    async def play(self, numbers: range) -> None:
        """Play one block of messages to all servers and compare them."""
        probes = [make_probe(self._seed, number) for number in numbers]
        by_revision = {name: [one for one in probes if one.revision == name] for name in self._stdio}
        await asyncio.gather(
            self._http.play(probes), *(self._stdio[name].play(some) for name, some in by_revision.items())
        )
        await self._http.ping()
        self._collect(self._http.faults)
        for wire in self._stdio.values():
            self._collect(wire.faults)
        for probe in probes:
            self._compare(probe)
        for server in self._servers:
            self.faults += server.new_faults()
            if server.process.returncode is not None:
                self.faults.append(f"the {server.transport} server has ended")
        self._blocks += 1
        if self._blocks <= _WARM_BLOCKS:
            self._warm = [server.resident_bytes() for server in self._servers]

    async def finish(self) -> None:
        """Check the memory, and end all servers."""
        for server, before in zip(self._servers, self._warm, strict=False):
            grown = server.resident_bytes() - before
            if grown > _ALLOWED_GROWTH:
                self.faults.append(f"the memory of the {server.transport} server has grown by {grown >> 20} MiB")
        await self._http.close()
        self.faults += filter(None, [await server.stop() for server in self._servers])
        for server in self._servers:
            self.faults += server.new_faults()

    @property
    def megabytes(self) -> str:
        """The memory of all servers."""
        return " ".join(str(server.resident_bytes() >> 20) for server in self._servers)

    def _collect(self, faults: list[Fault]) -> None:
        self.faults += [fault.describe(self._seed) for fault in faults]
        faults.clear()

    def _compare(self, probe: Probe) -> None:
        """Compare what the transports made of a message."""
        http, stdio = (one.verdicts.get(probe.number) for one in (self._http, self._stdio[probe.revision]))
        if http is None or stdio is None or http == stdio or is_documented(probe, http, stdio):
            return
        text = f"HTTP gives {http}, stdio gives {stdio}"
        self.faults.append(Fault("stdio", probe.number, probe.revision, probe.body, text).describe(self._seed))


async def _fuzz(options: argparse.Namespace) -> int:
    began, run = time.monotonic(), Run(options.seed)
    async with AsyncExitStack() as stack:
        await run.start(stack, options.connections)
        played = time.monotonic()
        end = options.first + options.messages
        for first in range(options.first, end, _BLOCK):
            await run.play(range(first, min(first + _BLOCK, end)))
            if len(run.faults) >= _MOST_FAULTS:
                break
            if options.verbose:
                print(f"{first + _BLOCK - options.first:,} messages, {run.megabytes} MiB", flush=True)
        rate = options.messages / (time.monotonic() - played)
        memory = run.megabytes
        await run.finish()
    conversations = range(options.messages // _MESSAGES_PER_CONVERSATION // 2)
    for protected in (True, False):
        async with both_paths(protected=protected) as paths:
            run.faults += await paths.differences(options.seed, conversations)
    seconds = time.monotonic() - began
    for fault in run.faults[:_MOST_FAULTS]:
        print(fault)
    print(
        f"{options.messages:,} messages of seed {options.seed} over HTTP and stdio in {seconds:.0f} s "
        f"({rate:.0f} a second), {memory} MiB: {len(run.faults)} faults"
    )
    return int(bool(run.faults))


async def _replay(transport: str, revision: str, data: bytes) -> int:
    """Send the bytes of one message and show what comes back."""
    async with start(transport) as server:
        if transport == "http":
            for response in await HttpFuzz(await server.port(), 1).send(revision, data):
                print(response.status, dict(response.headers), bytes(response.body))
        else:
            wire = StdioFuzz(server.process, revision)
            await wire.shake_hands()
            print(*await wire.send(data), sep="\n")
        print(await server.stop() or "the server ended normally")
        print(*server.new_faults(), sep="\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and return exit code 1 if there are faults."""
    options = _parser().parse_args(arguments)
    logging.disable(logging.CRITICAL)  # of the servers in this process; the log of the others is checked
    if options.replay:
        transport, revision, data = options.replay
        return uvloop.run(_replay(transport, revision, base64.b64decode(data)))
    return uvloop.run(_fuzz(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Send mutated messages to servers over HTTP and stdio."
    )
    parser.add_argument("--seed", type=int, default=1, help="the seed; the same seed gives the same messages")
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many messages to send")
    parser.add_argument("--first", type=int, default=0, help="the number of the first message")
    parser.add_argument("--connections", type=int, default=8, help="how many HTTP connections to use")
    parser.add_argument("--verbose", action="store_true", help="show the memory of the servers after each block")
    parser.add_argument(
        "--replay", nargs=3, metavar=("TRANSPORT", "REVISION", "BASE64"), help="send one message and show the replies"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
