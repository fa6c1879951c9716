"""Serving over stdio, until the client or its process has ended."""

import asyncio
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from axolotl_cli.exit import exit_with_stack
from axolotl_cli.logs import start_logging
from axolotl_cli.runtime import run, serving
from axolotl_cli.serving.start_findings import require_lock, warn_about_settings, warn_about_variables
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import counted, counts_in, enumeration, print_status
from axolotl_core.errors import ConfigurationError
from axolotl_server.execution.closing import CLOSE_SECONDS
from axolotl_server.host import ServerHost
from axolotl_server.transports.pipes import StandardStreams, claim_standard_streams
from axolotl_server.transports.stdio import DRAIN_SECONDS, serve_stdio

_LOOK_SECONDS: Final = 0.5
_ORPHAN_SECONDS: Final = 2.0
"""How long calls may go on after the parent process has ended, if another process holds the input open."""

_log: Final = logging.getLogger("axolotl")


def serve_over_stdio(resolve: Callable[[], ChosenTarget], *, is_locked: bool = False) -> None:
    """Serve one client, the process at the other end of stdin and stdout, which are looked at before the target."""
    parent = os.getppid()
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise ConfigurationError(
                f"{name} is closed, but the stdio transport needs it: open it, or use --transport http"
            ) from error
    streams = claim_standard_streams()
    chosen = resolve()
    early = chosen.settings
    start_logging(early.log_level, early.log)
    warn_about_variables(chosen)
    run(_serve(chosen.load(), streams, parent, chosen.toolsets if is_locked else None))


async def _serve(host: ServerHost, streams: StandardStreams, parent: int, locked: Sequence[str] | None) -> None:
    async with serving(host, lambda settings: DRAIN_SECONDS):
        if locked is not None:
            require_lock(locked, host)
        warn_about_settings(host)
        await host.begin()
        if os.isatty(streams.incoming):  # a person would wonder why nothing seems to happen
            offer = enumeration(counted(counts_in(host)))
            print_status(f"{host.settings.server.name} serves {offer} over stdio and is waiting for a client.")
            print_status("Use --transport http to serve over HTTP. Press Ctrl-C to stop.")
        if sys.platform != "win32":
            ClientWatch(host, streams, parent).start()
        await serve_stdio(host.handler, host.settings, streams, host.stop_signal, DRAIN_SECONDS)


class ClientWatch:
    """A thread that ends the process after its client, even if the event loop is blocked.

    The loop itself notices the end of the input, but not while code blocks it, and not while another process, such as a
    child of the client, holds the pipe open. Then the end of the parent process counts.
    """

    def __init__(self, host: ServerHost, streams: StandardStreams, parent: int) -> None:
        """Watch the input and the parent process; one with the number 1 never ends."""
        self._loop = asyncio.get_running_loop()
        self._stop_signal = host.stop_signal
        self._input = select.poll()
        self._input.register(streams.incoming, 0)  # a hangup is reported although nothing is asked for
        self._parent: int | None = parent
        self._limit_seconds = DRAIN_SECONDS + CLOSE_SECONDS
        """How long the loop may be blocked after the end of the client."""
        self._last_turn = time.monotonic()
        self._is_ending = False

    def start(self) -> None:
        """Watch until the loop is closed."""
        threading.Thread(target=self._watch, name="axolotl-client", daemon=True).start()

    def _watch(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                time.sleep(_LOOK_SECONDS)
                self._look()

    def _look(self) -> None:
        if self._parent is not None and os.getppid() != self._parent:
            self._parent = None
            self._begin_end(_ORPHAN_SECONDS)
            self._loop.call_soon_threadsafe(self._end_orphan)
        elif not self._is_ending and (self._stop_signal.requested or self._input.poll(0)):
            self._begin_end(self._limit_seconds)
        if self._is_ending:
            self._loop.call_soon_threadsafe(self._note_turn)
            if time.monotonic() - self._last_turn > self._limit_seconds:
                exit_with_stack(self._limit_seconds)

    def _begin_end(self, seconds: float) -> None:
        """Give the loop some seconds from now on to respond, if it is blocked."""
        if not self._is_ending:
            self._last_turn = time.monotonic()
        self._is_ending = True
        self._limit_seconds = min(self._limit_seconds, seconds)

    def _note_turn(self) -> None:
        self._last_turn = time.monotonic()

    def _end_orphan(self) -> None:
        """Stop; calls may take a moment longer, or the usual time if the input has ended too."""
        if not self._stop_signal.requested:
            _log.warning("the parent process has ended, so this server stops")
            self._stop_signal.set()
            self._loop.call_later(_ORPHAN_SECONDS, self._stop_signal.repeat)
