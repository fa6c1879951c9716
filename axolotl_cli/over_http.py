"""Serving over HTTP."""

import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from axolotl_cli.invitation import invite
from axolotl_cli.listening import listen, url_of
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.running import run, settle
from axolotl_cli.targets import choose
from axolotl_server.host import ServerHost
from axolotl_server.http.serve import serve_http

__all__ = ["serve_over_http"]


def serve_over_http(target: str | None, toolsets: Sequence[str] | None, flags: Mapping[str, Any]) -> None:
    """Serve any number of clients at a URL.

    Raises:
        ConfigurationError: if the server cannot start, or cannot have its address.
    """
    choice = choose(target, toolsets, flags)
    start_logging(choice.log_level)
    run(_serve(choice.load()))


async def _serve(host: ServerHost) -> None:
    async with host:
        set_log_level(host.settings.log_level)
        if host.audit is not None:
            host.audit.trail.open()
        settle()
        with listen(host.settings.http) as listener, _ended_by_signals():
            invite(host, url_of(host.settings.http, listener))
            await serve_http(host.handler, host.settings, listener, host.roles.event_store)
        logging.getLogger("axolotl").info("stopped")


class _Stopped(BaseException):
    """The process was told to stop."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """End the block in peace: uvicorn raises the signals it obeyed again when it is done."""
    wanted = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, _stop) for number in wanted}
    try:
        yield
    except _Stopped:
        return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped
