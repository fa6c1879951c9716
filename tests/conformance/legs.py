"""The runs of the suite."""

import shutil
import subprocess
from pathlib import Path

from tests.conformance.installation import SUITE, Installation
from tests.conformance.judging import Leg, Verdict, judge
from tests.conformance.scenarios import EVERYTHING, REVISIONS, checks_of
from tests.conformance.server import tail_of

LEGS = tuple(Leg(revision, checks_of(revision)) for revision in (*REVISIONS, EVERYTHING))
_SCENARIO_MILLISECONDS = 30_000
_LEG_SECONDS = 1200


def run_leg(leg: Leg, suite: Installation, url: str, directory: Path) -> Verdict:
    """Run the suite against a server in one revision and judge the results."""
    results, log = directory / leg.revision, directory / f"{leg.revision}.log"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    exit_code = _run_suite(leg, suite, url, results, log)
    verdict = judge(leg, results, exit_code)
    if exit_code and not any(results.iterdir()):
        return Verdict(verdict.summary, [*verdict.findings, f"it wrote no result, but said:\n{tail_of(log)}"])
    return verdict


def _run_suite(leg: Leg, suite: Installation, url: str, results: Path, log: Path) -> int:
    command: list[str | Path] = [suite.node, suite.program, "server", "--url", url, "--suite", "all"]
    if leg.revision != EVERYTHING:
        command += ["--spec-version", leg.revision]
    command += ["--expected-failures", SUITE / "expected-failures.yml"]
    command += ["--timeout", str(_SCENARIO_MILLISECONDS), "-o", results]
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_LEG_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124
    return done.returncode
