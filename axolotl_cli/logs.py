"""Logging to the standard error stream: one line a message, with a traceback indented below it."""

import logging
import sys
from textwrap import indent
from types import TracebackType
from typing import Any

from axolotl_cli.lines import escape_controls, one_line

__all__ = ["LineFormatter", "set_log_level", "start_logging"]


class LineFormatter(logging.Formatter):
    """Keeps a message on its line, so that no caller can forge another."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Write the line."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | Any) -> str:
        """Write the traceback, indented."""
        return indent(escape_controls(super().formatException(ei)), "  ")

    def formatStack(self, stack_info: str) -> str:
        """Write the stack, indented."""
        return indent(escape_controls(stack_info), "  ")


def start_logging(level: str) -> None:
    """Log to the standard error stream from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    set_log_level(level)


def set_log_level(level: str) -> None:
    """Choose the least important messages that are logged."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger().setLevel(number)
    # What uvicorn says of itself is said by the command already.
    logging.getLogger("uvicorn").setLevel(max(number, logging.WARNING))
