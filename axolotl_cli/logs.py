"""Logging to stderr, as text with indented tracebacks or as JSON lines."""

import logging
import sys
from textwrap import indent
from traceback import TracebackException
from types import TracebackType
from typing import Any

from axolotl_cli.text import escape_controls, one_line
from axolotl_server.observation.tracebacks import LimitedTracebackHandler, TracebackLimit, reduce_to_user_code
from axolotl_server.settings.server import LogSettings

_CHATTY = ("httpcore", "httpcore2", "httpx", "httpx2", "pgqueuer", "urllib3")
"""Libraries that log the URL of each request, which may contain arguments of calls and secrets, or each attempt."""


class LineFormatter(logging.Formatter):
    """Keeps each message on one line, so that no caller can forge another."""

    def __init__(self, *, user_code_only: bool = False) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
        self._user_code_only = user_code_only

    def formatMessage(self, record: logging.LogRecord) -> str:
        return one_line(super().formatMessage(record))

    def formatException(self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | Any) -> str:
        text = reduced_traceback(ei[1]) if self._user_code_only else super().formatException(ei)
        return indent(escape_controls(text), "  ")

    def formatStack(self, stack_info: str) -> str:
        return indent(escape_controls(stack_info), "  ")


def reduced_traceback(error: BaseException) -> str:
    """Format a traceback with the frames of the user's code only."""
    report = TracebackException.from_exception(error)
    omitted = reduce_to_user_code(report)
    text = "".join(report.format()).rstrip()
    return f"{text}\n({omitted} frames of libraries are not shown; log level debug shows all)" if omitted else text


def start_logging(level: str, settings: LogSettings | None = None, *, user_code_only: bool = False) -> None:
    """Log to stderr from now on, as text unless the settings say otherwise.

    Tracebacks may show user code only, unless the level is debug.
    """
    handler = LimitedTracebackHandler(sys.stderr, TracebackLimit())
    handler.setFormatter(LineFormatter(user_code_only=user_code_only and level != "debug"))
    logging.basicConfig(handlers=[handler], force=True)
    set_log_level(level, settings)


def set_log_level(level: str, settings: LogSettings | None = None) -> None:
    """Set the lowest level that is logged, and the format if there are settings."""
    if settings is not None:
        _set_format(settings)
    levels = logging.getLevelNamesMapping()
    number = levels[level.upper()]
    logging.getLogger().setLevel(number)
    # The command itself reports that the server starts and stops, and warnings are about what clients send.
    logging.getLogger("uvicorn").setLevel(max(number, logging.ERROR))
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    for name, own in settings.levels.items() if settings is not None else ():
        logging.getLogger(name).setLevel(levels[own.upper()])


def _set_format(settings: LogSettings) -> None:
    formatter: logging.Formatter = LineFormatter()
    if settings.format == "json":
        from axolotl_server.observation.json_log import JsonFormatter

        formatter = JsonFormatter(subject=settings.subject)
        logging.captureWarnings(True)  # Python would write them between the lines
    for handler in logging.getLogger().handlers:
        if not isinstance(handler, LimitedTracebackHandler):
            continue  # a handler of the user's code
        if settings.format == "json" or not isinstance(handler.formatter, LineFormatter):
            handler.setFormatter(formatter)
