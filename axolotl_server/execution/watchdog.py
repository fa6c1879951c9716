"""The watchdog, which finds code that blocks the event loop."""

import asyncio
import logging
import os
import selectors
import sys
import threading
import time
import traceback
from itertools import dropwhile
from math import inf
from pathlib import Path
from typing import Final

STALL_SECONDS: Final = 0.25
"""How long code may block the event loop before its stack is logged."""
_FRAMEWORK: Final = tuple(
    f"{Path(__file__).parents[2] / package}{os.sep}" for package in ("axolotl_core", "axolotl_server", "axolotl_cli")
)
_LOOP: Final = (f"{Path(asyncio.__file__).parent}{os.sep}", selectors.__file__)

_BLOCKED: Final = (
    "the event loop has been blocked for %.2f seconds by %s; await, or write a plain def, which runs in a thread"
)
_BUSY: Final = (
    "the event loop has been blocked for %.2f seconds, but by no code of yours: the machine may have too much to do"
)

_log = logging.getLogger("axolotl")


class Watchdog:
    """A thread that logs the stack of code that blocks the event loop, once per stall.

    Code that holds the GIL stops this thread too; the loop itself notices such a stall afterwards.
    """

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._interval = stall_seconds / 2
        self._stopped = threading.Event()
        self._last_turn = time.monotonic()
        self._reported_turn = 0.0
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._loop_thread: int
        self.stalls = 0
        """How often the loop was blocked since the start."""
        self.noticed_at: float | None = None
        """When the last stall was noticed, on the monotonic clock."""

    def start(self) -> None:
        """Watch the running loop from its next turn, so that the start of the server does not count."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._last_turn = inf
        self._loop.call_soon(self._beat)
        threading.Thread(target=self._watch, name="axolotl-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def _beat(self) -> None:
        last_turn, self._last_turn = self._last_turn, time.monotonic()
        seconds = self._last_turn - last_turn
        if self._is_new_stall(seconds, last_turn):
            _log.warning("the event loop was blocked for %.2f seconds; no stack was captured", seconds)
        if not self._stopped.is_set():
            self._loop.call_later(self._interval, self._beat)

    def _watch(self) -> None:
        while not self._stopped.wait(self._interval) and not self._loop.is_closed():
            last_turn = self._last_turn
            seconds = time.monotonic() - last_turn
            if self._is_new_stall(seconds, last_turn):
                self._report(seconds)

    def _is_new_stall(self, seconds: float, last_turn: float) -> bool:
        """Count a stall, unless it is counted already."""
        if seconds <= self._stall_seconds + self._interval:
            return False
        with self._lock:
            known, self._reported_turn = self._reported_turn == last_turn, last_turn
            self.stalls += not known
        if not known:
            self.noticed_at = time.monotonic()
        return not known

    def _report(self, seconds: float) -> None:
        """Log the blocking code and its stack, without the frames of the server that called it."""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None or not _log.isEnabledFor(logging.WARNING):
            return
        stack = traceback.extract_stack(frame)
        ours = [number for number, one in enumerate(stack) if one.filename.startswith(_FRAMEWORK)]
        called = stack[ours[-1] + 1 :] if ours else stack
        shown = [*dropwhile(lambda one: one.filename.startswith(_LOOP), called)]
        frames = f"Stack (most recent call last):\n{''.join(traceback.format_list(shown or stack)).rstrip()}"
        place = "".join(f"{one.name} ({one.filename}:{one.lineno})" for one in shown[:1])
        text, arguments = (_BLOCKED, (seconds, place)) if shown else (_BUSY, (seconds,))
        _log.handle(_log.makeRecord(_log.name, logging.WARNING, __file__, 0, text, arguments, None, sinfo=frames))
