"""The program of a worker process, which its supervisor starts with `python -m`."""

import json
import logging
import os
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from axolotl_cli.exit import ExitCode, run_and_exit
from axolotl_cli.logs import start_logging
from axolotl_cli.options import FileOptions
from axolotl_cli.runtime import run
from axolotl_cli.serving.address import UnusableAddress, listen, url_of
from axolotl_cli.serving.banner import print_banner
from axolotl_cli.serving.console import console_of, with_console_token
from axolotl_cli.serving.http import drain_seconds, started
from axolotl_cli.serving.shared_folder import keep_folder
from axolotl_cli.serving.start_findings import warn_about_settings
from axolotl_cli.serving.worker_process import Channel, WorkerOrder
from axolotl_cli.target import resolve_target
from axolotl_cli.text import report_findings
from axolotl_core.protocol.identity import Principal
from axolotl_server.execution.closing import CLOSE_SECONDS
from axolotl_server.host import ServerHost
from axolotl_server.hosting.assembly import load_redis
from axolotl_server.hosting.worker_settings import for_worker, worker_warnings
from axolotl_server.http.asgi import PrincipalGate
from axolotl_server.http.server.serve import serve_http
from axolotl_server.protocol.subscriptions import Listable
from axolotl_server.settings.server import ServerSettings

_log: Final = logging.getLogger("axolotl")


def main(arguments: list[str]) -> None:
    """Serve; the arguments are the descriptors of the channel and of the listening socket, if there is one."""
    end = socket.socket(fileno=int(arguments[0]))
    listener = socket.socket(fileno=int(arguments[1])) if len(arguments) > 1 else None
    order = WorkerOrder.receive(end)
    for descriptor in map(int, arguments):
        os.set_inheritable(descriptor, False)  # programs that tools start must not talk to the supervisor
    if order.sessions_directory is not None:
        keep_folder(order.sessions_directory)
    try:
        env_file, settings, profile = order.files
        files = FileOptions(env_file and Path(env_file), settings and Path(settings), profile)
        target = resolve_target(order.target, order.toolsets, order.flags, files, is_dev=order.is_development)
        early = target.settings
        start_logging(early.log_level, early.log, user_code_only=order.is_development)
        load_redis(early.redis)
        host = target.load(partial(_adapt, order), is_first=listener is None)
        if order.principal is not None:
            host.authenticator = PrincipalGate(msgspec.convert(order.principal, Principal))
        run(_Worker(order, host).serve(end, listener))
    except Exception as error:
        _fail(error, end, order)


def _fail(error: Exception, end: socket.socket, order: WorkerOrder) -> NoReturn:
    """Tell the supervisor why the worker cannot start; in development the supervisor prints it."""
    from axolotl_cli.development.report import explain

    end.setblocking(True)
    message = {"type": "failed", "problem": explain(error), "is_final": isinstance(error, UnusableAddress)}
    end.sendall(json.dumps(message).encode() + b"\n")
    if not order.is_development and not report_findings(error):
        raise error
    raise SystemExit(ExitCode.NOT_CONFIGURED) from None


def _adapt(order: WorkerOrder, settings: ServerSettings) -> ServerSettings:
    """Adapt the settings to one worker of several; in development its audit log has a name of its own too."""
    log = settings.audit.jsonl_path
    if order.is_development and log is not None:
        own = log.with_name(f"{log.stem}-dev-{{worker}}{log.suffix}")
        settings = settings.model_copy(update={"audit": settings.audit.model_copy(update={"jsonl_path": own})})
    settings = with_console_token(settings, order.state_key)
    return for_worker(settings, order.number, order.state_key, order.sessions_directory)


class _Worker:
    """Serves, reports to the supervisor and does what it asks for."""

    def __init__(self, order: WorkerOrder, host: ServerHost) -> None:
        self._order = order
        self._host = host

    async def serve(self, end: socket.socket, inherited: socket.socket | None) -> None:
        async with started(self._host, self._order.toolsets if self._order.is_locked else None):
            with inherited or listen(self._host.settings.http) as listener:
                self._channel = Channel(end, self._receive, self._host.stop_signal.set)
                console = console_of(self._host)
                if self._order.is_development and console is not None:
                    from axolotl_cli.development.report import print_call

                    console.journal.listen(partial(print_call, log_format=self._host.settings.log.format))
                await serve_http(
                    self._host,
                    listener,
                    on_hand_over=self._hand_over if self._order.is_development else None,
                    on_serving=partial(self._report, listener, inherited is None),
                    is_shared=True,
                )

    def _report(self, listener: socket.socket, is_first: bool) -> None:
        """Report that the worker serves; the first one sends the socket that it opened, and prints the banner."""
        host, http = self._host, self._host.settings.http
        if is_first:
            self._channel.send({"type": "listening"}, listener)
        if is_first and not self._order.is_development:
            for caution in worker_warnings(host.settings, host.roles):
                _log.warning("%s", caution)
            warn_about_settings(host)
            print_banner(host, url_of(http, listener))
        ready = {
            "type": "ready",
            "shutdown_seconds": drain_seconds(host.settings) + http.drain_seconds + CLOSE_SECONDS,
            "address_changed": http.port not in (0, listener.getsockname()[1]),
            "timeout_seconds": http.worker_timeout_seconds,
        }
        if self._order.is_development:
            from axolotl_cli.development.report import describe_server

            # A debugger may stop the process for any time, so that nothing waits for its pings.
            ready |= {"timeout_seconds": None, **describe_server(host, listener)}
        self._channel.send(ready)

    def _receive(self, message: Mapping[str, Any], attached: socket.socket | None) -> None:
        match message["type"]:
            case "ping":
                self._channel.send({"type": "pong"})
            case "problem":
                console = console_of(self._host)
                if console is not None:
                    console.set_problem(message["problem"])
            case "retire":
                if self._order.is_development:
                    _log.setLevel(logging.WARNING)  # a graceful shutdown after each change is not worth a message
                else:
                    self._host.stop_signal.replaced = True
                    self._channel.send({"type": "handed_over"})
                self._stop()
            case "stop":
                self._stop()

    def _stop(self) -> None:
        self._host.stop_signal.source = self._host.stop_signal.source or "its supervisor"
        self._host.stop_signal.set()

    def _hand_over(self) -> None:
        """Notify listening clients that newer code may have changed the lists: their next requests reach that code."""
        kinds: tuple[Listable, ...] = ("tools", "prompts", "resources")
        for kind in kinds:
            if kind in self._host.roles.offers:
                self._host.handler.subscriptions.list_changed(kind)
        self._channel.send({"type": "handed_over"})


if __name__ == "__main__":  # tool processes import this module too
    run_and_exit(lambda: main(sys.argv[1:]))
