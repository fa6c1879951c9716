"""The stop signal of a server: once for graceful shutdown, twice for immediate, three times to exit."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_IGNORED: Final = "%s is ignored: only the supervisor of several workers (http.workers) reloads; restart this server"
_KILLED_BY: Final = 128
"""Added to the number of a signal for the exit code, as shells do."""

_log: Final = logging.getLogger("axolotl")


class StopSignal:
    """Says that the server must stop, because of a signal or because its client left."""

    def __init__(self) -> None:
        self._count = 0
        self._requested_event = asyncio.Event()
        self._urgent_event = asyncio.Event()
        self.source: str | None = None
        """The name of the first signal; None if there was none."""
        self.replaced = False
        """Whether another process takes over the socket."""
        self._on_repeat: Callable[[int], object] | None = None

    @property
    def requested(self) -> bool:
        """Whether a stop was requested; true from the moment of the signal."""
        return self._count > 0

    @property
    def urgent(self) -> bool:
        """Whether a stop was requested again."""
        return self._count > 1

    def set(self) -> None:
        """Request a stop, unless that was done before."""
        self._count = max(1, self._count)
        self._set_events()

    def repeat(self) -> None:
        """Request a stop like another signal; the second request makes it urgent."""
        self._count += 1
        self._set_events()
        if self._on_repeat is not None:
            self._on_repeat(self._count)

    async def wait(self) -> None:
        """Wait until a stop is requested."""
        await self._requested_event.wait()

    async def run_unless_urgent(
        self, work: Coroutine[Any, Any, object], otherwise: Callable[[], Coroutine[Any, Any, object]] | None = None
    ) -> None:
        """Run some last work; if the stop becomes urgent, cancel it and run `otherwise` instead."""
        working = asyncio.ensure_future(work)
        urgent = asyncio.ensure_future(self._urgent_event.wait())
        try:
            await asyncio.wait((working, urgent), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            elif otherwise is not None:
                await otherwise()
        finally:
            working.cancel()
            urgent.cancel()
            await asyncio.wait((urgent,))  # so that it is not reported as a task that still runs

    @contextmanager
    def listening(self, on_signal: Callable[[int], object] | None = None) -> Iterator[None]:
        """Handle the termination signals of the process while the block runs; the third one exits. SIGHUP is ignored.

        `on_signal` gets the number of requests so far; it is called in the middle of other code. After a signal the
        process is about to end, so the handlers stay: another one must not raise KeyboardInterrupt in the last steps.
        """
        loop = asyncio.get_running_loop()
        self._on_repeat = on_signal

        def handle(number: int, frame: FrameType | None) -> None:
            self.source = self.source or signal.Signals(number).name
            self._count += 1
            if self._count > 2:
                os._exit(_KILLED_BY + number)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._set_events)
            if on_signal is not None:
                on_signal(self._count)

        if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
            yield
            return

        def ignore(number: int, frame: FrameType | None) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_log.warning, _IGNORED, signal.Signals(number).name)

        handlers = {**dict.fromkeys(_SIGNALS, handle), signal.SIGHUP: ignore}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            if self.source is None:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _set_events(self) -> None:
        if self.requested:
            self._requested_event.set()
        if self.urgent:
            self._urgent_event.set()
