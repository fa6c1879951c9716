"""Calls that arrive faster than they can be served.

The tool computes for five milliseconds on the event loop. Each round first measures the capacity: the calls per second
of a closed loop with eight connections. Then an open-loop client sends requests at a multiple of it.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.contenders import AXOLOTL, FASTMCP, FLOOR, MCP, Contender, Launch
from benchmarks.errors import BenchmarkError
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series, goal
from benchmarks.open_loop import Outcome
from benchmarks.processes import finished, free_port, listening
from benchmarks.usage import cpu_seconds

NAME = "overload"
_LOADS = (1, 2, 4, 8)
_WORST = _LOADS[-1]
_SECONDS = 2.0
_CAPACITY_SECONDS = 1.0
_QUICK_SECONDS = 0.5
_SETTLE_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_IDLE_SHARE = 0.05
_GOAL_REFUSAL = 50.0
_GOAL_RECOVERY = 100.0
_KEPT = {2: 0.9, 8: 0.6}
"""The part of the capacity that is left at a load."""


def _overloaded(contender: Contender, load: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        port = free_port()
        seconds = _SECONDS if scale.share == 1 else _QUICK_SECONDS
        with listening(contender.command(Launch("stateless", port, "busy", tuned=True)), port) as process:
            yield lambda: _sample(process.pid, port, load, seconds)

    return opened


def _sample(pid: int, port: int, load: int, seconds: float) -> Sample:
    _settle(pid)
    closed = _client(pid, port, 0, min(seconds, _CAPACITY_SECONDS))
    if not closed.served:
        raise BenchmarkError("no call was served")
    capacity = closed.served / closed.seconds
    outcome = _client(pid, port, capacity * load, seconds)
    sample = {
        "goodput": outcome.served / outcome.seconds / capacity * 100,
        "share": _successes_per_cpu(outcome) / _successes_per_cpu(closed) * 100,
        "recovery": outcome.recovery * 1e3,
    }
    return {**sample, "refusal": outcome.refusal_p99 * 1e3} if outcome.refused else sample


def _settle(pid: int) -> None:
    """Wait until the server has finished the calls of the round before, which clients no longer wait for."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        spent = cpu_seconds(pid)
        time.sleep(_LOOK_SECONDS)
        if cpu_seconds(pid) - spent < _IDLE_SHARE * _LOOK_SECONDS:
            return
    raise BenchmarkError(f"the server was still busy after {_SETTLE_SECONDS:g} s")


def _successes_per_cpu(outcome: Outcome) -> float:
    return outcome.successes / outcome.cpu


def _client(pid: int, port: int, rate: float, seconds: float) -> Outcome:
    arguments = [sys.executable, "-m", "benchmarks.open_loop", str(pid), str(port), str(rate), str(seconds)]
    return Outcome(**json.loads(finished(arguments)))


def _name(contender: Contender, load: int) -> str:
    return f"{contender.name}, load {load} ×"


def _kept(key: str, title: str) -> Metric:
    comparisons = {_name(AXOLOTL, load): Comparison("goal", at_least=_KEPT.get(load)) for load in _LOADS}
    return Metric(key, f"{NAME}, {title}", "% of capacity", comparisons)


def _within(key: str, title: str) -> Metric:
    return Metric(
        key, f"{NAME}, {title}", "ms", {_name(AXOLOTL, load): Comparison("goal", at_most=1) for load in _LOADS}
    )


SCENARIO = Scenario(
    name=NAME,
    group="overload",
    summary="a tool that computes for 5 ms, called 1, 2, 4 and 8 times as often as it can be served",
    metrics=(
        _kept("goodput", "goodput"),
        _kept("share", "successes per CPU second"),
        _within("refusal", "p99 of refusals"),
        _within("recovery", "until normal latency"),
    ),
    series=(
        goal(goodput=100, share=100, refusal=_GOAL_REFUSAL, recovery=_GOAL_RECOVERY),
        *(Series(_name(AXOLOTL, load), _overloaded(AXOLOTL, load)) for load in _LOADS),
        *(Series(_name(peer, _WORST), _overloaded(peer, _WORST)) for peer in (FLOOR, MCP, FASTMCP)),
    ),
    rounds=3,
)
