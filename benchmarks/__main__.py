"""The command `python -m benchmarks`: runs scenarios, prints a table and saves all samples."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.model import FULL, QUICK, Scenario
from benchmarks.publication import publish
from benchmarks.report import failures, results_of, summary, table, write_json
from benchmarks.rounds import run_scenario
from benchmarks.scenarios import SCENARIOS

_OUTPUT = Path(__file__).parent / "results.json"
_FALLS_SHORT = {"miss", "failed"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenarios and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.publish and options.only:
        parser.error("--publish needs all scenarios: remove --only")
    if options.list:
        print("\n".join(f"{scenario.name:26}{scenario.summary}" for scenario in SCENARIOS))
        return 0
    if not sys.platform.startswith("linux"):
        print("The benchmarks need Linux: they read the CPU time of other processes.", file=sys.stderr)
        return 2
    scale = QUICK if options.quick else FULL
    rows, load = [], os.getloadavg()[0]
    for scenario in _chosen(options.only):
        print(f"measuring {scenario.name} …", file=sys.stderr, flush=True)
        rows += run_scenario(scenario, scale)
    print(*filter(None, (table(rows), failures(rows), summary(rows))), sep="\n\n")
    results = results_of(rows, scale, load)
    write_json(options.output, results)
    if options.publish:
        publish(results)
    return int(options.strict and any(row.verdict in _FALLS_SHORT for row in rows))


def _chosen(names: Sequence[str] | None) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if names is None or scenario.name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare Axolotl with a bare ASGI application and other frameworks."
    )
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="run this scenario (repeatable)")
    parser.add_argument("--quick", action="store_true", help="make few calls, to check that everything works")
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument(
        "--output", type=Path, default=_OUTPUT, help="the file for the samples (default: benchmarks/results.json)"
    )
    parser.add_argument("--publish", action="store_true", help="record the results that the documentation site shows")
    parser.add_argument("--strict", action="store_true", help="exit with code 1 if a target is missed or a run fails")
    return parser


if __name__ == "__main__":
    sys.exit(main())
