"""The recorded results, and the plots and tables that the documentation shows of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from benchmarks.model import QUICK, Group, Results, Row
from benchmarks.plots import bar_chart
from benchmarks.report import markdown_table, read_json, write_json

RECORD: Final = Path(__file__).with_name("recorded_results.json")
_DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
PAGE: Final = _DOCS / "reference" / "performance.md"
IMAGES: Final = _DOCS / "images"
_REGION: Final = re.compile(r"(?<=<!-- bench:start -->\n).*(?=<!-- bench:end -->)", re.DOTALL)

_QUICK_NOTE: Final = "**A quick run with few calls: it shows that everything works, but the numbers mean little.**"


def publish(results: Results) -> None:
    """Record results, and update the plots and the page."""
    write_json(RECORD, results)
    redraw()


def redraw() -> None:
    """Update the plots and the page from the recorded results."""
    results = read_json(RECORD)
    for name, image in plots(results).items():
        (IMAGES / name).write_text(image, encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_REGION.sub(lambda found: page_region(results), page, count=1), encoding="utf-8")


def plots(results: Results) -> Mapping[str, str]:
    """Return a plot for each group, by file name."""
    return {_file_name(group): bar_chart(_title(group, rows), rows) for group, rows in _groups(results)}


def page_region(results: Results) -> str:
    """Return the part of the page that depends on the results."""
    sections = (
        f"### Results: {group}\n\n![{_title(group, rows)}](../images/{_file_name(group)})\n\n{markdown_table(rows)}\n"
        for group, rows in _groups(results)
    )
    return "\n".join([_circumstances(results), _missed(results.rows), *sections])


def published_region() -> str:
    """Return that part of the page as it is."""
    found = _REGION.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE.name} has no marks bench:start and bench:end"
    return found[0]


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
