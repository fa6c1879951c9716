"""Reports of results as tables and as JSON."""

import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from benchmarks.contenders import CONTENDERS
from benchmarks.model import Results, Row, Scale

_TITLES = ("benchmark", "contender", "value", "ratio", "spread", "target", "")
_RIGHT_ALIGNED = {2, 3, 4}
_WORDS = {"absent": "not installed"}


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a plain text table."""
    cells = [_TITLES, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_TITLES))]
    lines = [_line(line, widths) for line in cells]
    return "\n".join([lines[0], "-" * sum(widths, 2 * len(widths)), *lines[1:]])


def summary(rows: Sequence[Row]) -> str:
    """Return the number of rows per verdict."""
    counts = Counter(row.verdict for row in rows if row.verdict)
    return ", ".join(f"{count} {_WORDS.get(verdict, verdict)}" for verdict, count in counts.items())


def failures(rows: Sequence[Row]) -> str:
    """Return why contenders failed, one line per reason."""
    reasons = dict.fromkeys(f"{row.scenario}, {row.contender}: {row.note}" for row in rows if row.verdict == "failed")
    return "\n".join(reasons)


def markdown_table(rows: Sequence[Row]) -> str:
    """Return the rows as a table for the documentation."""
    lines = [_TITLES, ("---",) * len(_TITLES), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def results_of(rows: Sequence[Row], scale: Scale, load: float) -> Results:
    """Return the results of a run on this machine."""
    return Results(
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()} with {os.cpu_count()} CPUs",
        load=load,
        versions={contender.distribution: contender.version() for contender in CONTENDERS},
        scale=scale,
        rows=tuple(rows),
    )


def write_json(path: Path, results: Results) -> None:
    """Write results with all samples."""
    path.write_text(json.dumps(asdict(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Results:
    """Read results."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def number(value: float) -> str:
    """Return a value with three digits, or as an integer."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def outcome(row: Row) -> str:
    """Return the verdict as text."""
    return _WORDS.get(row.verdict, row.verdict)


def _cells(row: Row) -> tuple[str, ...]:
    value = f"{number(row.value)} {row.unit}" if row.value is not None else "–"
    ratio = f"{number(row.ratio)} × {row.baseline}" if row.ratio is not None else ""
    spread = "–".join(number(bound) for bound in row.spread) if row.spread else ""
    return row.metric, row.contender, value, ratio, spread, row.target, outcome(row)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if column in _RIGHT_ALIGNED else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
