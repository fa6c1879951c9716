"""Servers in processes of their own, as they run in production."""

import asyncio
import json
import os
import re
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.settings_file import FileSettings
from axolotl_testing.project import DEFAULT_PROFILE, Project, SettingsSource

_SHOWN_LINES: Final = 100
_MAX_LINE_BYTES: Final = 64 * 1024
_START_SECONDS: Final = 60.0
_MARGIN_SECONDS: Final = 5.0
"""How much longer than its drain a server may take to stop."""
_READY_LINE: Final = re.compile(r"serves? .* at (https?://\S+?)[\"\s]")
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX: Final = "AXOLOTL_"


class ServerProcess:
    """A running server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.ensure_future(self._read())

    @property
    def url(self) -> str:
        """The URL of its endpoint."""
        return self._url.result()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return urlsplit(self.url).port or 0

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """The last 100 lines of its log."""
        return "\n".join(self._lines)

    async def until_ready(self, seconds: float) -> None:
        """Wait until it says that it serves; the test fails if it ends or takes longer."""
        __tracebackhide__ = True
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait((self._url, self._reading), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            problem = f"is not ready after {seconds:g} seconds"
        else:
            if self._url.done():
                return
            problem = f"ended with exit code {await self._process.wait()} before it was ready"
        pytest.fail(f"The server {problem}; the report shows its log", pytrace=False)

    async def stop(self, seconds: float) -> str | None:
        """Stop it gracefully, or kill it with all its processes after a time; return what went wrong."""
        if self._process.returncode is None:
            self._signal(os.kill, signal.SIGTERM)
        try:
            async with asyncio.timeout(seconds):
                code = await self._process.wait()
        except TimeoutError:
            await self.kill()
            return f"did not stop within {seconds:g} seconds and was killed"
        await self.kill()  # what it may have left over
        return None if code == 0 else f"stopped with exit code {code}"

    async def kill(self) -> None:
        """Kill it and all its processes."""
        self._signal(os.killpg, signal.SIGKILL)
        await self._process.wait()
        await self._reading

    def _signal(self, send: Callable[[int, int], object], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            send(self.pid, number)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while data := await _read_line(self._process.stdout):
            line = _STYLES.sub("", data.decode(errors="replace")).rstrip("\n")
            self._lines.append(line)
            found = _READY_LINE.search(f"{line} ")
            if found is not None and not self._url.done():
                self._url.set_result(found[1])


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Read a line of the log; empty at its end. What is too long is dropped, so that the server can go on writing."""
    try:
        return await reader.readline()
    except ValueError:
        return f"(a line of more than {_MAX_LINE_BYTES} bytes)\n".encode()


class ServerFactory:
    """Starts servers; the type of the fixture `axolotl_server`."""

    def __init__(self, project: Project, report: Callable[[str], object]) -> None:
        self._project = project
        self._report = report
        """Adds the log of a server to the report of the test."""

    @asynccontextmanager
    async def __call__(
        self,
        target: str | None = None,
        *,
        profile: str | None = DEFAULT_PROFILE,
        settings: SettingsSource | None = None,
        env: Mapping[str, str] | None = None,
        workers: int = 1,
        start_seconds: float = _START_SECONDS,
    ) -> AsyncIterator[ServerProcess]:
        """Start `axolotl serve` on a free port of 127.0.0.1, wait until it is ready, and stop it after the block.

        The target, the profile and the settings are those of `axolotl_client`. The process gets the environment
        without the variables that begin with `AXOLOTL_`, and `env`. The test fails if the server does not start, does
        not stop gracefully, or ends with another exit code than 0; the report of a failed test shows its log.
        """
        file = self._project.settings_file(settings, profile)
        overrides = settings if isinstance(settings, Mapping) else {}
        limits = load_settings(flags=overrides, file=file, environment={}).http
        seconds = limits.drain_delay_seconds + limits.drain_seconds + _MARGIN_SECONDS
        words = [*([] if target is None else [target]), *_options(file, settings), "--workers", str(workers)]
        server = await self._start(words, {**_environment(overrides), **(env or {})}, file)
        has_failed = True
        try:
            await server.until_ready(start_seconds)
            yield server
            has_failed = False
        finally:
            problem = await server.stop(seconds)
            if has_failed or problem is not None:
                self._report(server.log)
        if problem is not None:
            pytest.fail(f"The server {problem}; the report shows its log", pytrace=False)

    async def _start(self, words: list[str], environment: Mapping[str, str], file: FileSettings) -> ServerProcess:
        directory = self._project.directory if file.path is None else file.path.parent
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "axolotl_cli", "serve", *words),
            *("--transport", "http", "--host", "127.0.0.1", "--port", "0"),
            cwd=directory,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=_MAX_LINE_BYTES,
        )
        return ServerProcess(process)


def _options(file: FileSettings, settings: SettingsSource | None) -> list[str]:
    path = ["--settings", str(file.path)] if isinstance(settings, str | Path) else []
    return path if file.profile is None else [*path, "--profile", file.profile]


def _environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Make the environment of a server: settings are variables, which win over the settings file."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(_PREFIX)}

    def portable(value: Any) -> Any:
        return sorted(value) if isinstance(value, set | frozenset) else str(value)

    given = {
        f"{_PREFIX}{name.upper()}": value if isinstance(value, str) else json.dumps(value, default=portable)
        for name, value in settings.items()
    }
    return {**own, "AXOLOTL_ENV_FILE": os.devnull, **given}
