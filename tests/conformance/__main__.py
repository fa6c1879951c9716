"""The command `python -m tests.conformance`: runs the conformance suite against a server and requires every check."""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from tests.conformance.failure import CannotRun
from tests.conformance.installation import install
from tests.conformance.legs import LEGS, run_leg
from tests.conformance.server import ROOT, served, tail_of

_DIRECTORY = ROOT / ".conformance"
"""The suite, its results and the server's log; ignored by git."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen legs and return the exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the server is stopped
    try:
        return int(not _all_pass(options.only, options.url))
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 1


def _all_pass(revisions: Sequence[str] | None, url: str | None) -> bool:
    suite = install(_DIRECTORY / "suite")
    log = _DIRECTORY / "server.log"
    with nullcontext(url) if url else served(log) as place:
        verdicts = []
        for leg in LEGS:
            if not revisions or leg.revision in revisions:
                verdicts.append(run_leg(leg, suite, place, _DIRECTORY / "results"))
                print(verdicts[-1].summary, *verdicts[-1].findings, sep="\n  ", flush=True)
    passed = not any(verdict.findings for verdict in verdicts)
    if not passed and not url:
        print(f"the server's log ends with:\n{tail_of(log)}")
    return passed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description="Play the conformance suite against a server with every fixture.",
    )
    names = [leg.revision for leg in LEGS]
    parser.add_argument("--only", action="append", choices=names, help="run this leg (repeatable)")
    parser.add_argument("--url", help="judge a server that runs already, instead of starting one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
