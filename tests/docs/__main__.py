"""The command `python -m tests.docs [PAGE…]`: updates code, output and tables from files and commands."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.docs.bounds import bounds_table, short_bounds_table
from tests.support.docs.comparison import comparison_table, try_projects
from tests.support.docs.methods import methods_table
from tests.support.docs.metrics import metrics_table
from tests.support.docs.pages import ROOT, Block, blocks_in, example_text, page_names, read_page, with_region
from tests.support.docs.refusals import refusals_table
from tests.support.docs.sessions import Shell, refreshed
from tests.support.docs.settings_reference import PAGES, settings_reference
from tests.support.docs.situations import errors_table
from tests.support.docs.tables import (
    call_costs_table,
    contract_rules_table,
    layer_costs_table,
    revisions_table,
    with_costs,
)


def _settings_of(name: str) -> Callable[[str], str]:
    return lambda page: settings_reference(name)


_TABLES: Final[dict[str, Callable[[str], str]]] = {
    **{name: _settings_of(name) for name in PAGES},
    "revisions": lambda page: revisions_table(),
    "call-costs": lambda page: call_costs_table(),
    "layer-costs": lambda page: layer_costs_table(),
    "contract-rules": lambda page: contract_rules_table(),
    "metrics": lambda page: metrics_table(),
    "methods": lambda page: asyncio.run(methods_table()),
    "errors": lambda page: asyncio.run(errors_table()),
    "comparison": lambda page: comparison_table(try_projects()),
    "bounds": lambda page: bounds_table(),
    "short-bounds": lambda page: short_bounds_table(),
    "refusals": lambda page: asyncio.run(refusals_table()),
}


def main(*pages: str) -> None:
    """Refresh these pages, or all of them."""
    logging.disable(logging.CRITICAL)
    for name in pages or page_names():
        before = text = read_page(name)
        for block in blocks_in(name, text):
            fresh = _fresh(block)
            text = text.replace(f"```{block.language}\n{block.text}```", f"```{block.language}\n{fresh}```", 1)
        for region, made in _TABLES.items():
            if f"<!-- {region}:start -->" in text:
                text = with_region(text, region, made(text))
        text = with_costs(name, text)
        if text != before:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"{name} changed")


def _fresh(block: Block) -> str:
    if block.source is not None:
        return example_text(block.source)
    return refreshed(block, Shell().play(block)) if block.language == "console" else block.text


if __name__ == "__main__":
    main(*(Path(page).resolve().relative_to(ROOT).as_posix() for page in sys.argv[1:]))
