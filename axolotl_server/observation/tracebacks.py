"""Tracebacks: a limit for repeated failures, and the frames of the user's own code."""

import copy
import logging
import os
import sysconfig
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from time import monotonic
from traceback import FrameSummary, StackSummary, TracebackException
from typing import Final, TextIO, TypeAlias

from axolotl_core.layers import Call

_Key: TypeAlias = tuple[str, str, str]

_SECONDS: Final = 10.0
_MAX_KEYS: Final = 1000
_LIMITED_LOGGERS: Final = ("axolotl", "uvicorn")


class TracebackLimit:
    """Shows one traceback per feature and type of exception every ten seconds, and a line for each of the others.

    It applies to the loggers of the server only.
    """

    def __init__(self, seconds: float = _SECONDS, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._shown: dict[_Key, tuple[float, int]] = {}
        """When a traceback was last shown, and how many were omitted since."""

    def apply(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record, or a copy with a text instead of its traceback."""
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or record.name.partition(".")[0] not in _LIMITED_LOGGERS:
            return record
        call = getattr(record, "axolotl_call", None)
        source = (call.spec.kind, call.spec.name) if isinstance(call, Call) else (record.name, str(record.msg))
        key = (*source, f"{kind.__module__}.{kind.__qualname__}")
        now = self._clock()
        shown, omitted = self._shown.get(key, (None, 0))
        if shown is None or now - shown >= self._seconds:
            self._note(key, now, 0)
            return record
        self._note(key, shown, omitted + 1)
        shortened = copy.copy(record)
        shortened.exc_info = shortened.exc_text = None
        shortened.msg = "%s: %s (traceback omitted, %d since the last one shown)"
        shortened.args = (record.getMessage(), kind.__qualname__, omitted + 1)
        return shortened

    def _note(self, key: _Key, shown: float, omitted: int) -> None:
        if len(self._shown) >= _MAX_KEYS and key not in self._shown:
            self._shown.clear()
        self._shown[key] = shown, omitted


class LimitedTracebackHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream with a limited number of tracebacks."""

    def __init__(self, stream: TextIO, limit: TracebackLimit) -> None:
        super().__init__(stream)
        self._limit = limit

    def format(self, record: logging.LogRecord) -> str:
        return super().format(self._limit.apply(record))


def reduce_to_user_code(report: TracebackException) -> int:
    """Leave out the frames of libraries and of the framework, unless nothing else is left; return their number."""
    kept = user_frames(report.stack)
    omitted = len(report.stack) - len(kept) if kept else 0
    if kept:
        report.stack = StackSummary.from_list(kept)
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            omitted += reduce_to_user_code(other)
    return omitted


def user_frames(stack: Iterable[FrameSummary]) -> list[FrameSummary]:
    """Select the frames of code that is neither a library nor part of the framework."""
    foreign = (*_foreign_directories(), "<")
    return [frame for frame in stack if frame.filename.endswith(".py") and not frame.filename.startswith(foreign)]


@cache
def _foreign_directories() -> tuple[str, ...]:
    framework = Path(__file__).parents[2]
    own = [framework / name for name in ("axolotl_core", "axolotl_server", "axolotl_cli", "axolotl_testing")]
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(f"{directory}{os.sep}" for directory in (*own, *libraries))
