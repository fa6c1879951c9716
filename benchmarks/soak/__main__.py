"""python -m benchmarks.soak: long runs with bounds, and what came of them."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.soak.fleet import fleet
from benchmarks.soak.killing import call_while_killing
from benchmarks.soak.memory import Course, over_calls, over_sessions
from benchmarks.soak.redis import redis_server
from benchmarks.soak.server import LEDGER

_CALLS_PER_KILL = 400
_SHARED_SHARE = 4
"""Of how many sessions one is opened again where they are shared, which takes longer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and return the exit code: 1 if memory grows or a call got lost."""
    options = _parser().parse_args(arguments)
    share = 0.02 if options.quick else 1.0
    calls, sessions, killed = (round(number * share) for number in (options.calls, options.sessions, options.killed))
    with redis_server() as redis_url:
        results = [_told(over_calls(calls)), _told(over_sessions(sessions))]
        if redis_url is not None:
            results.append(_told(over_sessions(sessions // _SHARED_SHARE, 2, redis_url)))
        results.append(_kill_workers(killed, redis_url))
    return int(not all(results))


def _told(course: Course) -> bool:
    print(course, flush=True)
    return course.is_flat


def _kill_workers(calls: int, redis_url: str | None) -> bool:
    with tempfile.TemporaryDirectory(prefix="axolotl-soak-") as directory:
        ledger = Path(directory, "ledger")
        ledger.touch()
        environment = {LEDGER: str(ledger), "AXOLOTL_SESSIONS__STORE_TIMEOUT_SECONDS": "20"}
        if redis_url is not None:
            environment["AXOLOTL_SESSIONS__REDIS_URL"] = redis_url
        with fleet("benchmarks.soak.server:Container", 2, environment) as workers:
            began, kills = time.monotonic(), max(1, calls // _CALLS_PER_KILL)
            outcome = asyncio.run(call_while_killing(workers, calls, sessions=redis_url is not None, kills=kills))
            seconds = time.monotonic() - began
        faults = outcome.faults(ledger)
    broken = ", ".join(f"{count} {how}" for how, count in sorted(Counter(outcome.broken.values()).items()))
    print(
        f"{calls:,} mixed calls while {len(outcome.killed)} workers were killed, in {seconds:.0f} s: "
        f"{len(outcome.answered):,} answered, {len(outcome.broken):,} failed at their connection ({broken or 'none'}), "
        f"{len(faults)} faults"
    )
    for fault in faults[:20]:
        print(f"  {fault}")
    return not faults


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description="Watch memory over long runs, and kill workers under load."
    )
    parser.add_argument("--calls", type=int, default=200_000, help="how many calls the memory is watched over")
    parser.add_argument("--sessions", type=int, default=20_000, help="how many sessions it is watched over")
    parser.add_argument("--killed", type=int, default=10_000, help="how many calls are made while workers are killed")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of everything, to see that it works")
    return parser


if __name__ == "__main__":
    sys.exit(main())
