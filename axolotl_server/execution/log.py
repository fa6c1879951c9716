"""The log of the server, whose handlers may raise."""

import logging
from contextlib import suppress


def contain_log_failures() -> None:
    """Report errors of log handlers on stderr instead of raising them into the code that logs.

    That code may be about to answer a request. Handlers should catch their errors themselves; not all of them do.
    """
    log = logging.getLogger("axolotl")
    if "handle" in vars(log):
        return
    handle = log.handle

    def handle_safely(record: logging.LogRecord) -> None:
        try:
            handle(record)
        except Exception:
            with suppress(Exception):
                logging.Handler().handleError(record)

    vars(log)["handle"] = handle_safely
