"""The command `python -m benchmarks.soak`: long runs with limits, and their results."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.errors import NotInstalled
from benchmarks.redis_server import redis_server
from benchmarks.soak.fleet import fleet
from benchmarks.soak.killing import call_while_killing
from benchmarks.soak.memory import Course, over_calls, over_sessions
from benchmarks.soak.server import LEDGER

_CALLS_PER_KILL = 400
_SHARED_SHARE = 4
"""Shared sessions are slower, so their number is divided by this."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and return exit code 1 if memory grows or a call is lost."""
    options = _parser().parse_args(arguments)
    share = 0.02 if options.quick else 1.0
    calls, sessions, killed = (round(number * share) for number in (options.calls, options.sessions, options.killed))
    with _redis() as redis_url:
        results = [_report(over_calls(calls)), _report(over_sessions(sessions))]
        if redis_url is not None:
            results.append(_report(over_sessions(sessions // _SHARED_SHARE, 2, redis_url)))
        results.append(_kill_workers(killed, redis_url))
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


def _kill_workers(calls: int, redis_url: str | None) -> bool:
    with tempfile.TemporaryDirectory(prefix="axolotl-soak-") as directory:
        ledger = Path(directory, "ledger")
        ledger.touch()
        environment = {LEDGER: str(ledger), "AXOLOTL_SESSIONS__STORE_TIMEOUT_SECONDS": "20"}
        if redis_url is not None:
            environment["AXOLOTL_REDIS__URL"] = redis_url
        with fleet("benchmarks.soak.server:Container", 2, environment) as workers:
            began, kills = time.monotonic(), max(1, calls // _CALLS_PER_KILL)
            outcome = asyncio.run(call_while_killing(workers, calls, sessions=redis_url is not None, kills=kills))
            seconds = time.monotonic() - began
        faults = outcome.faults(ledger)
    broken = ", ".join(f"{count} {how}" for how, count in sorted(Counter(outcome.broken.values()).items()))
    print(
        f"{calls:,} mixed calls while {len(outcome.killed)} workers were killed, in {seconds:.0f} s: "
        f"{len(outcome.answered):,} answered, {len(outcome.broken):,} lost their connection ({broken or 'none'}), "
        f"{len(faults)} faults"
    )
    for fault in faults[:20]:
        print(f"  {fault}")
    return not faults


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description="Check memory over long runs, and kill workers under load."
    )
    parser.add_argument("--calls", type=int, default=200_000, help="the number of calls to check memory over")
    parser.add_argument("--sessions", type=int, default=20_000, help="the number of sessions to check memory over")
    parser.add_argument("--killed", type=int, default=10_000, help="the number of calls while workers are killed")
    parser.add_argument("--quick", action="store_true", help="run 2% of the work, to check that everything works")
    return parser


if __name__ == "__main__":
    sys.exit(main())
