"""The reference that is generated from the code when the site is built: `<!-- generated: NAME -->` on a page."""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.publication import plots, recorded_results, results_text
from tests.support.docs.bounds import bounds_table, short_bounds_table
from tests.support.docs.methods import methods_table
from tests.support.docs.metrics import metrics_table
from tests.support.docs.pages import Block
from tests.support.docs.refusals import refusals_table
from tests.support.docs.sessions import Shell
from tests.support.docs.settings_reference import PAGES, settings_reference
from tests.support.docs.situations import errors_table
from tests.support.docs.tables import call_costs_table, contract_rules_table, layer_costs_table, revisions_table

_CHARTS: Final = {
    "http": "CPU time of a small call over HTTP",
    "stdio": "Calls over stdio",
    "start": "Time and memory of a start",
}

GENERATED: Final[dict[str, Callable[[], str]]] = {
    **{name: partial(settings_reference, name) for name in PAGES},
    "bench": lambda: results_text(recorded_results()),
    "bounds": bounds_table,
    "call-costs": call_costs_table,
    "charts": lambda: "\n\n".join(f"![{text}](images/benchmark-{name}.svg)" for name, text in _CHARTS.items()),
    "contract-rules": contract_rules_table,
    "errors": lambda: asyncio.run(errors_table()),
    "layer-costs": layer_costs_table,
    "methods": lambda: asyncio.run(methods_table()),
    "metrics": metrics_table,
    "refusals": lambda: asyncio.run(refusals_table()),
    "revisions": revisions_table,
    "short-bounds": short_bounds_table,
}
"""What each marker stands for. `help COMMAND` is not listed: it stands for the options of any command."""

MARKER: Final = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def fill(docs: Path) -> None:
    """Replace the markers on all pages below a folder, and draw the plots of the benchmarks."""
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        filled = MARKER.sub(lambda marker: content_of(marker[1]), text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
    for name, image in plots(recorded_results()).items():
        (docs / "images" / name).write_text(image, encoding="utf-8")


def content_of(name: str) -> str:
    """Make what a marker stands for; raises KeyError for an unknown one."""
    kind, _, command = name.partition(" ")
    if kind != "help":
        return GENERATED[name]().rstrip("\n")
    line = f"$ axolotl {command} -h\n"
    [shown] = Shell().play(Block("operate/cli.md", 0, "console", line, None))
    return f"```console\n{line}{shown}\n```"
