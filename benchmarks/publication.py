"""The recorded results, and the plots and tables that the documentation site shows of them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from benchmarks.model import QUICK, Group, Results, Row
from benchmarks.plots import bar_chart
from benchmarks.report import markdown_table, read_json, write_json

_RECORD: Final = Path(__file__).with_name("recorded_results.json")

_QUICK_NOTE: Final = "**A quick run with few calls: it shows that everything works, but the numbers mean little.**"


def publish(results: Results) -> None:
    """Record results."""
    write_json(_RECORD, results)


def recorded_results() -> Results:
    """Read the recorded results."""
    return read_json(_RECORD)


def plots(results: Results) -> Mapping[str, str]:
    """Return a plot for each group, by file name."""
    return {_file_name(group): bar_chart(_title(group, rows), rows) for group, rows in _groups(results)}


def results_text(results: Results) -> str:
    """Return the tables of the results with their circumstances, in Markdown."""
    sections = (
        f"### Results: {group}\n\n![{_title(group, rows)}](../images/{_file_name(group)})\n\n{markdown_table(rows)}\n"
        for group, rows in _groups(results)
    )
    return "\n".join([_circumstances(results), _missed(results.rows), *sections])


def _groups(results: Results) -> Iterator[tuple[Group, list[Row]]]:
    groups: tuple[Group, ...] = get_args(Group)
    for group in groups:
        rows = [row for row in results.rows if row.group == group]
        if rows:
            yield group, rows


def _title(group: Group, rows: Sequence[Row]) -> str:
    return f"Benchmarks of the group {group}: {', '.join(dict.fromkeys(row.scenario for row in rows))}"


def _file_name(group: Group) -> str:
    return f"benchmark-{group.lower()}.svg"


def _circumstances(results: Results) -> str:
    versions = ", ".join(f"`{name}` {version}" for name, version in results.versions.items() if version is not None)
    text = (
        f"Measured in one run of at most {results.scale.rounds} rounds, Python {results.python}, {results.machine}. "
        f"The load average was {results.load:.1f} at the beginning. Versions: {versions}.\n"
    )
    return f"{text}\n{_QUICK_NOTE}\n" if results.scale == QUICK else text


def _missed(rows: Sequence[Row]) -> str:
    missed = [f"- {row.metric}, {row.contender}: target {row.target}" for row in rows if row.verdict == "miss"]
    return "\n".join(["These targets were missed:\n", *missed, ""]) if missed else "No target was missed.\n"
