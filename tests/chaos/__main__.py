"""The command `python -m tests.chaos`: breaks what servers depend on, under load, and checks what they do."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from tests.chaos.scenarios import SCENARIOS

_SHOWN = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenarios, and return exit code 1 if there are faults."""
    options = _parser().parse_args(arguments)
    faults = 0
    for name in options.only or SCENARIOS:
        began = time.monotonic()
        result = asyncio.run(SCENARIOS[name](options.seed, options.rounds))
        print(f"{result} ({time.monotonic() - began:.0f} s)", *result.faults[:_SHOWN], sep="\n  ", flush=True)
        faults += len(result.faults)
    return int(faults > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break things under load.")
    parser.add_argument("--rounds", type=int, default=10, help="how often each fault happens")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the load and of the choice of victims")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="run this scenario (repeatable)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
