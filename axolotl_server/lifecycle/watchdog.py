"""Code that blocks the event loop: nothing can answer while it does, so it is found and named."""

import asyncio
import logging
import sys
import threading
import time
import traceback
from math import inf

_log = logging.getLogger("axolotl")


class Watchdog:
    """A thread that looks whether the loop still turns, and logs what holds it up, once for each time.

    Code that lets no other thread run keeps this one from looking too: the loop itself notices such a time afterwards.
    """

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._interval = stall_seconds / 2
        self._stopped = threading.Event()
        self._turned = time.monotonic()
        self._told = 0.0
        self._telling = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self.stalls = 0
        """How often the loop was held up since the start."""
        self.noticed: float | None = None
        """When that was noticed last, by the monotonic clock."""

    def start(self) -> None:
        """Watch the running loop, from its next turn on: the start of the server itself holds nobody up."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._turned = inf
        self._loop.call_soon(self._beat)
        threading.Thread(target=self._watch, name="axolotl-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def _beat(self) -> None:
        turned, self._turned = self._turned, time.monotonic()
        still = self._turned - turned
        if self._is_news(still, turned):
            _log.warning("the event loop stood still for %.2f seconds, and nothing could look why", still)
        if self._loop is not None and not self._stopped.is_set():
            self._loop.call_later(self._interval, self._beat)

    def _watch(self) -> None:
        while not self._stopped.wait(self._interval) and not self._has_ended():
            turned = self._turned
            still = time.monotonic() - turned
            if self._is_news(still, turned):
                _log.warning("the event loop stands still for %.2f seconds, held up here:\n%s", still, self._stack())

    def _has_ended(self) -> bool:
        """Tell whether the loop was closed, whoever should have stopped this before."""
        return self._loop is not None and self._loop.is_closed()

    def _is_news(self, still: float, turned: float) -> bool:
        """Count a time in which the loop stood still, unless it is counted already."""
        if still <= self._stall_seconds + self._interval:
            return False
        with self._telling:
            known, self._told = self._told == turned, turned
            self.stalls += not known
        if not known:
            self.noticed = time.monotonic()
        return not known

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)
        return "".join(traceback.format_stack(frame)) if frame is not None else "(its thread has ended)"
