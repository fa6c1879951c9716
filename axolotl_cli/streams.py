"""The standard output as the command's own, while code of others runs."""

import contextlib
import os
import sys
from collections.abc import Iterator

__all__ = ["reserved_output"]


@contextlib.contextmanager
def reserved_output() -> Iterator[None]:
    """Send what others print, from Python, C or a child process, to the standard error stream."""
    sys.stdout.flush()
    with _redirected_descriptor(), contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _redirected_descriptor() -> Iterator[None]:
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
