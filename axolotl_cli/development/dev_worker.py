"""One process of `axolotl dev`: serves the code as it was when the process began, until newer code takes over."""

import json
import logging
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from axolotl_cli.development.report import CallLog, describe_offer, explain
from axolotl_cli.exit import ExitCode, leave
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.runtime import run, serving
from axolotl_cli.serving.address import listen
from axolotl_cli.serving.worker import draining_seconds, read_order
from axolotl_cli.serving.worker_process import Channel
from axolotl_cli.target import resolve_target
from axolotl_server.host import ServerHost
from axolotl_server.hosting.worker_settings import for_worker
from axolotl_server.http.assembly import prepare
from axolotl_server.http_server.serve import serve_http
from axolotl_server.methods.subscriptions import Listable
from axolotl_server.settings.server import ServerSettings


def main(arguments: list[str]) -> None:
    """Serve; the arguments are the descriptors of the channel, and of the listening socket where there is one."""
    control = socket.socket(fileno=int(arguments[0]))
    listener = socket.socket(fileno=int(arguments[1])) if len(arguments) > 1 else None
    order = read_order(control)
    try:
        choice = resolve_target(
            order["target"], order["toolsets"], order["flags"], order["env_file"] and Path(order["env_file"])
        )
        start_logging(choice.settings.log_level, choice.settings.log)
        adapt = partial(_for_developing, number=order["number"], state_key=order["state_key"])
        run(_serve(choice.load(adapt), control, listener))
    except Exception as error:
        problem = json.dumps({"type": "failed", "problem": explain(error)})
        control.setblocking(True)
        control.sendall(problem.encode() + b"\n")
        raise SystemExit(ExitCode.NOT_CONFIGURED) from None


def _for_developing(settings: ServerSettings, number: int, state_key: str) -> ServerSettings:
    """Give each process an audit log of its own: the one before may still write to its own."""
    logs = {name: getattr(settings.audit, name) for name in ("jsonl_path", "sqlite_path")}
    own = {name: path.with_name(f"{path.stem}-dev-{{worker}}{path.suffix}") for name, path in logs.items() if path}
    apart = settings.model_copy(update={"audit": settings.audit.model_copy(update=own)})
    return for_worker(apart, number, state_key)


async def _serve(host: ServerHost, control: socket.socket, listener: socket.socket | None) -> None:
    async with serving(host, draining_seconds):
        set_log_level(host.settings.log_level, host.settings.log)
        if host.audit is not None:
            host.audit.trail.open()
        prepare(host)
        orders = _Orders(host, control)
        channel = orders.channel
        if listener is None:
            listener = listen(host.settings.http)
            channel.say({"type": "listening"}, listener)
        if host.console is not None and host.settings.log.format != "json":
            host.console.journal.listen(CallLog().hear)
        with listener:
            patience = 2 * draining_seconds(host.settings) + host.settings.limits.close_seconds
            ready = {"type": "ready", "patience_seconds": patience, **describe_offer(host, listener)}
            await serve_http(host, listener, on_hand_over=orders.tell_changes, on_serving=partial(channel.say, ready))


class _Orders:
    """Obeys what the supervisor says."""

    def __init__(self, host: ServerHost, control: socket.socket) -> None:
        self._host = host
        self.channel = Channel(control, self._hear, host.ending.set)
        self._changed: Sequence[Listable] = ()

    def _hear(self, message: Mapping[str, Any], handed: socket.socket | None) -> None:
        """Tell the console what became of newer code, or leave to that what comes from now on."""
        if message["type"] == "problem" and self._host.console is not None:
            self._host.console.tell_problem(message["problem"])
        elif message["type"] == "retire":
            logging.getLogger("axolotl").setLevel(logging.WARNING)  # that it ends in order is no news
            self._changed = message["changed"]
            self._host.ending.set()

    def tell_changes(self) -> None:
        """Tell those who listen which lists the newer code has changed, and the supervisor that it may say so."""
        for kind in self._changed:
            self._host.handler.subscriptions.list_changed(kind)
        self.channel.say({"type": "handed_over"})


if __name__ == "__main__":  # a process that runs tools imports this module too
    try:
        main(sys.argv[1:])
    except SystemExit as end:
        leave(end.code)
        raise
    leave(0)
