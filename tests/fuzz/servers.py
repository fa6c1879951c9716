"""The server processes of a run, their logs and their memory."""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.fuzz.container import FAILING, PRIVATE, TOKEN

_ROOT: Final = Path(__file__).resolve().parents[2]
_ADDRESS: Final = re.compile(rb"http://127\.0\.0\.1:(\d+)")
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 15.0
_MAX_LINE: Final = 64 * 1024 * 1024
_EXPECTED: Final = re.compile(rf"\w+ {FAILING}(://app)? failed, reference [0-9a-f]+")
"""Errors that features of the server cause on purpose."""


class FuzzedServer:
    """A server process with its log."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, transport: str) -> None:
        self.process = process
        self.transport = transport
        self._log = log
        self._read = 0

    async def port(self) -> int:
        """Wait until the server listens, and return its port."""
        async with asyncio.timeout(_START_SECONDS):
            while True:
                found = _ADDRESS.search(self._text())
                if found is not None:
                    return int(found[1])
                if self.process.returncode is not None:
                    raise RuntimeError(f"the server ended: {self._text().decode()}")
                await asyncio.sleep(0.02)  # sleeps: the address is only in the log

    def resident_bytes(self) -> int:
        """Return the memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def new_faults(self) -> Iterator[str]:
        """Check the lines that were logged since the last time."""
        text = self._text()
        lines, self._read = text[self._read :].splitlines(), len(text)
        for line in lines:
            yield from _faults_of(line.decode("utf-8", "replace"))

    async def stop(self) -> str | None:
        """End the server as its client or operator would, and return what went wrong."""
        if self.transport == "stdio":
            assert self.process.stdin is not None
            self.process.stdin.close()
        elif self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                code = await self.process.wait()
        except TimeoutError:
            return f"the {self.transport} server does not end"
        return None if code == 0 else f"the {self.transport} server ended with {code}"

    def _text(self) -> bytes:
        return self._log.read_bytes()


@asynccontextmanager
async def start(transport: str) -> AsyncIterator[FuzzedServer]:
    """Start a server, and kill it at the end if it still runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}
    words = ("serve", "tests.fuzz.container:Container", "-t", transport, *(("-p", "0") if transport == "http" else ()))
    with tempfile.NamedTemporaryFile("ab", prefix="axolotl-fuzz-") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "axolotl_cli", *words),
            cwd=_ROOT,
            env={**environment, "PYTHONPATH": str(_ROOT)},
            stdin=asyncio.subprocess.PIPE if transport == "stdio" else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if transport == "stdio" else asyncio.subprocess.DEVNULL,
            stderr=log,
            limit=_MAX_LINE,
        )
        try:
            yield FuzzedServer(process, Path(log.name), transport)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _faults_of(line: str) -> Iterator[str]:
    if PRIVATE in line or TOKEN in line:
        yield f"the log contains a secret: {line[:300]}"
    try:
        record = json.loads(line)
    except ValueError:
        if "Traceback" in line or "Error" in line:
            yield f"the log contains an error: {line[:300]}"
        return
    if record["level"] in ("error", "critical") and not _EXPECTED.match(record["message"]):
        yield f"an error was logged at {record['time']}: {record['message']} {record.get('exception', '')[-1500:]}"
