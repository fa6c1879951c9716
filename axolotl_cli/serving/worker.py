"""One of several processes that serve an address, as the supervisor starts it."""

import json
import logging
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from axolotl_cli.exit import ExitCode, leave
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.runtime import run, serving, settle
from axolotl_cli.serving.address import listen, url_of
from axolotl_cli.serving.banner import invite
from axolotl_cli.serving.worker_process import Channel
from axolotl_cli.target import resolve_target
from axolotl_cli.text import report_findings
from axolotl_server.host import ServerHost
from axolotl_server.hosting.worker_settings import cautions, for_worker
from axolotl_server.http.assembly import prepare
from axolotl_server.http_server.fair_acceptor import BoardPlace, ConnectionBoard
from axolotl_server.http_server.serve import serve_http
from axolotl_server.sessions.sessions import load_stores
from axolotl_server.settings.server import ServerSettings

_LONGEST_ORDER: Final = 2**20
_log: Final = logging.getLogger("axolotl")


def main(arguments: list[str]) -> None:
    """Serve; the arguments are the descriptors of the channel, and of the listening socket where there is one."""
    control = socket.socket(fileno=int(arguments[0]))
    listener = socket.socket(fileno=int(arguments[1])) if len(arguments) > 1 else None
    order = read_order(control)
    try:
        choice = resolve_target(order["target"], order["toolsets"], order["flags"], _path(order["env_file"]))
        early = choice.settings
        start_logging(early.log_level, early.log)
        load_stores(early.sessions)
        adapt = partial(for_worker, number=order["number"], state_key=order["state_key"])
        place = BoardPlace(ConnectionBoard(*order["descriptors"]), order["number"])
        run(_serve(choice.load(adapt), control, listener, place))
    except Exception as error:
        if not report_findings(error):
            raise
        raise SystemExit(ExitCode.NOT_CONFIGURED) from None


def read_order(control: socket.socket) -> Mapping[str, Any]:
    """Read what is to be served; nothing else is said on the channel before this process speaks."""
    data = b""
    while not data.endswith(b"\n") and len(data) < _LONGEST_ORDER:
        piece = control.recv(_LONGEST_ORDER)
        if not piece:
            raise SystemExit(0)
        data += piece
    order: Mapping[str, Any] = json.loads(data)
    return order


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


async def _serve(host: ServerHost, control: socket.socket, listener: socket.socket | None, place: BoardPlace) -> None:
    async with serving(host, draining_seconds):
        set_log_level(host.settings.log_level, host.settings.log)
        if host.audit is not None:
            host.audit.trail.open()
        prepare(host)
        settle()
        is_first = listener is None
        listener = listener or listen(host.settings.http)
        with listener:
            channel = Channel(control, partial(_obey, host), host.ending.set)
            report = partial(_report, host, channel, listener, is_first=is_first)
            await serve_http(host, listener, on_serving=report, place=place)


def draining_seconds(settings: ServerSettings) -> float:
    """Say how long calls may go on after the process was told to end."""
    return settings.http.drain_delay_seconds + settings.http.drain_seconds


def _report(host: ServerHost, channel: Channel, listener: socket.socket, *, is_first: bool) -> None:
    """Tell the supervisor that clients are served; the first worker hands it the address that it took."""
    if is_first:
        channel.say({"type": "listening"}, listener)
        _introduce(host, listener)
    channel.say({"type": "ready", **_description(host.settings, listener)})


def _introduce(host: ServerHost, listener: socket.socket) -> None:
    """Say what the server is, and what its workers do not share, once for all of them."""
    for caution in cautions(host.settings, host.roles):
        _log.warning("%s", caution)
    invite(host, url_of(host.settings.http, listener))


def _obey(host: ServerHost, message: Mapping[str, Any], handed: socket.socket | None) -> None:
    host.ending.source = host.ending.source or "its supervisor"
    host.ending.replaced = host.ending.replaced or message["type"] == "retire"
    host.ending.set()


def _description(settings: ServerSettings, listener: socket.socket) -> dict[str, Any]:
    http = settings.http
    return {
        "patience_seconds": draining_seconds(settings) + http.drain_seconds + settings.limits.close_seconds,
        "moved": http.port not in (0, listener.getsockname()[1]),
    }


if __name__ == "__main__":  # a process that runs tools imports this module too
    try:
        main(sys.argv[1:])
    except SystemExit as end:
        leave(end.code)
        raise
    leave(0)
