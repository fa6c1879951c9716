"""Keeps stalls of the event loop out of the log: a busy machine may stop any test for a second."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger("axolotl")


def _is_not_stall(record: logging.LogRecord) -> bool:
    return record.filename != "watchdog.py"


def hide_stalls() -> None:
    """Drop what the watchdog logs in this process and its forks."""
    _log.addFilter(_is_not_stall)


@contextmanager
def shown_stalls() -> Iterator[None]:
    """Let the watchdog log, for tests of it."""
    _log.removeFilter(_is_not_stall)
    try:
        yield
    finally:
        hide_stalls()
