"""The command `python -m benchmarks.soak`: long runs with limits, and their results."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.errors import NotInstalled
from benchmarks.redis_server import redis_server
from benchmarks.soak.memory import Course, over_calls, over_sessions

_SHARED_SHARE = 4
"""Shared sessions are slower, so their number is divided by this."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and return exit code 1 if memory grows."""
    options = _parser().parse_args(arguments)
    share = 0.02 if options.quick else 1.0
    calls, sessions = (round(number * share) for number in (options.calls, options.sessions))
    with _redis() as redis_url:
        results = [_report(over_calls(calls)), _report(over_sessions(sessions))]
        if redis_url is not None:
            results.append(_report(over_sessions(sessions // _SHARED_SHARE, 2, redis_url)))
    return int(not all(results))


@contextmanager
def _redis() -> Iterator[str | None]:
    with tempfile.TemporaryDirectory(prefix="axolotl-soak-") as directory, ExitStack() as stack:
        try:
            stack.enter_context(redis_server(Path(directory)))
        except NotInstalled:
            yield None
        else:
            yield f"unix://{directory}/redis.sock"


def _report(course: Course) -> bool:
    print(course, flush=True)
    return course.is_flat


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Check memory over long runs.")
    parser.add_argument("--calls", type=int, default=200_000, help="the number of calls to check memory over")
    parser.add_argument("--sessions", type=int, default=20_000, help="the number of sessions to check memory over")
    parser.add_argument("--quick", action="store_true", help="run 2% of the work, to check that everything works")
    return parser


if __name__ == "__main__":
    sys.exit(main())
