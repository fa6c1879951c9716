"""Tracebacks of failures that come again and again: one now and then, and a line for each of the others."""

import copy
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final, TextIO, TypeAlias

from axolotl_core.layers import ToolCall

_Key: TypeAlias = tuple[str, str, str]

_SECONDS: Final = 10.0
_MOST_KEYS: Final = 1000
_SPARED: Final = ("axolotl", "uvicorn")


class Tracebacks:
    """Lets a traceback pass once in a while for each tool and type of exception.

    What other loggers say is left as it is: who logs there knows what for.
    """

    def __init__(self, seconds: float = _SECONDS, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._shown: dict[_Key, tuple[float, int]] = {}
        """When each was last shown, and how many were left out since."""

    def spare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Give the record itself, or one whose words stand for its traceback."""
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or record.name.partition(".")[0] not in _SPARED:
            return record
        key = (*_source_of(record), f"{kind.__module__}.{kind.__qualname__}")
        now = self._clock()
        shown, left_out = self._shown.get(key, (None, 0))
        if shown is None or now - shown >= self._seconds:
            self._note(key, now, 0)
            return record
        self._note(key, shown, left_out + 1)
        spared = copy.copy(record)
        spared.exc_info = spared.exc_text = None
        spared.msg = "%s: %s, without its traceback, number %d since the last one shown"
        spared.args = (record.getMessage(), kind.__qualname__, left_out + 1)
        return spared

    def _note(self, key: _Key, shown: float, left_out: int) -> None:
        if len(self._shown) >= _MOST_KEYS and key not in self._shown:
            self._shown.clear()
        self._shown[key] = shown, left_out


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream, with their tracebacks as far as those are spared."""

    def __init__(self, stream: TextIO, tracebacks: Tracebacks) -> None:
        super().__init__(stream)
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Write the text of a record."""
        return super().format(self._tracebacks.spare(record))


def _source_of(record: logging.LogRecord) -> tuple[str, str]:
    """Tell what failed: a feature, or the place that logged it."""
    call = getattr(record, "axolotl_call", None)
    if isinstance(call, ToolCall):
        return call.spec.kind, call.spec.name
    return record.name, str(record.msg)
