"""Why code does not start, for the person who just wrote it."""

import traceback
from typing import Final

from axolotl_core.errors import ConfigurationError

__all__ = ["explain"]

_MOST_CHARACTERS: Final = 8000
_NOT_THEIRS: Final = ("<frozen importlib", "axolotl_server/loading.py", "importlib/__init__.py")


def explain(error: BaseException) -> str:
    """Write what is wrong, and where in the code if it is there."""
    findings = error.findings if isinstance(error, ConfigurationError) else ()
    cause = _root(error) if findings else error
    parts = [*findings, *(() if cause is None else ("", *_traceback(cause)))]
    return "\n".join(parts).strip()[:_MOST_CHARACTERS]


def _root(error: BaseException) -> BaseException | None:
    """Find what an error of ours came of; None where it is its own reason."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    return None if isinstance(root, ConfigurationError) else root


def _traceback(error: BaseException) -> list[str]:
    """Write a traceback without the frames of those who imported the code."""
    summary = traceback.TracebackException.from_exception(error)
    theirs = [frame for frame in summary.stack if not any(part in frame.filename for part in _NOT_THEIRS)]
    summary.stack = traceback.StackSummary.from_list(theirs)
    return "".join(summary.format(chain=False)).rstrip().splitlines()
