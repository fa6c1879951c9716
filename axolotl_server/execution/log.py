"""The log of the server, whose handlers may raise."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial


def contain_log_failures() -> None:
    """Report errors of log handlers on stderr instead of raising them into the code that logs.

    That code may be about to answer a request. Handlers should catch their errors themselves; not all of them do.
    """
    log = logging.getLogger("axolotl")
    if "handle" not in vars(log):
        vars(log)["handle"] = partial(_handle, log.handle)


def _handle(handle: Callable[[logging.LogRecord], None], record: logging.LogRecord) -> None:
    try:
        handle(record)
    except Exception:
        with suppress(Exception):
            logging.Handler().handleError(record)
