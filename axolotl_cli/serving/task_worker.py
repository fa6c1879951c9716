"""The process of `axolotl worker`: it runs tasks, answers probes, and drains when it is stopped."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Final

from axolotl_cli.logs import start_logging
from axolotl_cli.runtime import run, serving
from axolotl_cli.target import ChosenTarget
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import TasksUnavailable
from axolotl_server.extensions.tasks.extension import Tasks
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.host import ServerHost
from axolotl_server.hosting.worker_settings import for_lone_process

_STOPPED_SECONDS: Final = 1.0
_PROBE_SECONDS: Final = 5.0
_MAX_HEAD_BYTES: Final = 8192
_STATUSES: Final = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}

_log: Final = logging.getLogger("axolotl")


def run_tasks(chosen: ChosenTarget, *, tools: frozenset[str] | None, health: str | None) -> None:
    """Run stored tasks until a signal arrives."""
    early = chosen.settings
    start_logging(early.log_level, early.log)
    with ExitStack() as slot:
        host = chosen.load(partial(for_lone_process, kind="task", hold=slot.callback))
        run(_work(host, tools, None if health is None else _address(health)))


async def _work(host: ServerHost, tools: frozenset[str] | None, address: tuple[str, int] | None) -> None:
    async with serving(host, lambda settings: settings.http.drain_seconds):
        service = _service(host, tools)
        await host.begin()
        async with nullcontext() if address is None else _probes(service, host, *address):
            _log.info("running tasks of: %s", ", ".join(sorted(service.runner.tools)))
            await host.stop_signal.wait()
            await _drain(host)


def _service(host: ServerHost, tools: frozenset[str] | None) -> TaskService:
    tasks = host.extension(Tasks)
    if tasks is None:
        raise ConfigurationError(
            'No tool of the target runs as a task: give one task_support = "optional" or "required"'
        )
    tasks.works, service = True, tasks.service
    if not service.engine.durable:
        raise ConfigurationError(
            'axolotl worker needs stored tasks: set tasks.url, for example to "sqlite:///tasks.db"'
        )
    known = service.runner.tools
    unknown = sorted((tools or frozenset()) - set(known))
    if unknown:
        raise ConfigurationError(f"--tools: no tool that runs as a task is called {', '.join(unknown)}")
    service.runner.only = tools
    return service


async def _drain(host: ServerHost) -> None:
    """Begin no more tasks, and let running ones finish for a while; the rest is stopped and may go on elsewhere."""
    inflight, seconds = host.handler.inflight, host.settings.http.drain_seconds
    host.pause()
    if inflight:
        _log.info("stopping; running tasks: %d, which get at most %g seconds", len(inflight), seconds)
        await host.stop_signal.run_unless_urgent(inflight.drain(seconds))
        inflight.stop_all(CancelReason.SHUTDOWN)
        await inflight.drain(_STOPPED_SECONDS)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"--health: write HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


@asynccontextmanager
async def _probes(service: TaskService, host: ServerHost, address: str, port: int) -> AsyncIterator[None]:
    """Answer probes while the block runs."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status = await _status(head.split(b"\r\n", 1)[0], service, host)
                body = b'{"status":"%b"}' % (b"ok" if status == 200 else b"failed")
                writer.write(
                    f"HTTP/1.1 {status} {_STATUSES[status]}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(answer, address, port, limit=_MAX_HEAD_BYTES)
    async with server:
        _log.info("probes are answered on %s, port %d", *server.sockets[0].getsockname()[:2])
        yield


async def _status(line: bytes, service: TaskService, host: ServerHost) -> int:
    """Say whether the process lives, and whether it can reach its store and accepts tasks."""
    path = line.split(b" ")[1:2]
    if path == [b"/livez"]:
        return 200
    if path != [b"/readyz"]:
        return 404
    if host.stop_signal.requested:
        return 503
    try:
        await service.engine.ping()
    except TasksUnavailable:
        return 503
    return 200
