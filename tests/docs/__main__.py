"""The command `python -m tests.docs [PAGE…]`: updates code, output and the comparison from files and commands."""

import logging
import sys
from pathlib import Path

from tests.support.docs.comparison import comparison_table, try_projects
from tests.support.docs.pages import ROOT, Block, blocks_in, example_text, page_names, read_page, with_region
from tests.support.docs.sessions import Shell, refreshed


def main(*pages: str) -> None:
    """Refresh these pages, or all of them."""
    logging.disable(logging.CRITICAL)
    for name in pages or page_names():
        before = text = read_page(name)
        for block in blocks_in(name, text):
            fresh = _fresh(block)
            text = text.replace(f"```{block.language}\n{block.text}```", f"```{block.language}\n{fresh}```", 1)
        if "<!-- comparison:start -->" in text:
            text = with_region(text, "comparison", comparison_table(try_projects()))
        if text != before:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"{name} changed")


def _fresh(block: Block) -> str:
    if block.source is not None:
        return example_text(block.source)
    return refreshed(block, Shell().play(block)) if block.language == "console" else block.text


if __name__ == "__main__":
    main(*(Path(page).resolve().relative_to(ROOT).as_posix() for page in sys.argv[1:]))
