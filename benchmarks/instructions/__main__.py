"""The command `python -m benchmarks.instructions`: counts instructions and compares them with the recorded counts."""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import wire
from benchmarks.instructions.comparison import START, compare, count_lines
from benchmarks.instructions.counted_calls import CALLS, SCENARIOS

RECORD: Final = Path(__file__).with_name("recorded.json")
_TIMEOUT_SECONDS: Final = 600
_TOTAL: Final = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
_ADVICE: Final = "Record them without your change, with python -m benchmarks.instructions --record, and compare then."
_LEAST: Final = 10_000
"""More than in the dumps of others who call `functools.reduce`, at imports and at the end."""
_REFERENCES: Final = re.compile(r"I\s+refs:\s+([\d,]+)")


def count_calls(directory: Path) -> dict[str, int]:
    """Count the instructions of a call in each scenario."""
    output = directory / "calls"
    # Everything inside functools.reduce is counted; each time it returns, the count is written to a file.
    counting = ("--collect-atstart=no", "--toggle-collect=functools_reduce", "--dump-after=functools_reduce")
    module = ("-m", "benchmarks.instructions.counted_calls")
    _valgrind(("--tool=callgrind", *counting, f"--callgrind-out-file={output}"), module, b"")
    dumps = sorted(directory.glob("calls.*"), key=lambda dump: int(dump.suffix[1:]))
    counts = [count for count in map(_count_of_dump, dumps) if count > _LEAST]
    return dict(zip(SCENARIOS, counts, strict=True))


def _count_of_dump(dump: Path) -> int:
    total = _TOTAL.search(dump.read_text())
    assert total is not None
    return int(total[1]) // CALLS


def count_start() -> int:
    """Count the instructions of a server over stdio, from its start to the response to `initialize` and its end."""
    serve = ("-m", "axolotl_cli", "serve", "benchmarks.servers.axolotl_add:Container")
    report = _valgrind(("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"), serve, START_INPUT)
    found = _REFERENCES.search(report)
    assert found is not None, report
    return int(found[1].replace(",", ""))


START_INPUT: Final = wire.stdio_handshake()


def _valgrind(options: Sequence[str], arguments: Sequence[str], sent: bytes) -> str:
    """Run Python under valgrind; without random hashes, because the layout of dicts depends on them."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        ("valgrind", *options, sys.executable, *arguments),
        input=sent,
        capture_output=True,
        env=environment,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    report = done.stderr.decode(errors="replace")
    if done.returncode:
        raise SystemExit(f"valgrind failed with exit code {done.returncode}:\n{report}")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print a table, and return exit code 1 if a count has grown by more than five percent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--record", action="store_true", help="store the counts in the repository")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("Instructions are not counted: install valgrind.", file=sys.stderr)
        return 2 if os.environ.get("CI") else 0
    with tempfile.TemporaryDirectory() as directory:
        counts = count_calls(Path(directory)) | {START: count_start()}
    python = platform.python_version()
    everything = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    recorded = everything.get(python, {})
    print(*count_lines(counts, recorded), sep="\n")
    if options.record:
        RECORD.write_text(json.dumps({**everything, python: counts}, indent=2) + "\n")
        return 0
    if set(recorded) != set(counts):
        print(f"The counts are not compared: {RECORD.name} has none for Python {python}.", _ADVICE, file=sys.stderr)
        return 0
    grown = compare(counts, recorded)
    print(*grown, sep="\n", file=sys.stderr)
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
