"""python -m tests.docs: write again what the pages take from examples, code and commands."""

import asyncio

from tests.docs.pages import ROOT, Block, blocks_in, example_text, page_names, read_page, with_region
from tests.docs.sessions import commands_of, play, refreshed
from tests.docs.situations import errors_table
from tests.docs.tables import revisions_table, settings_table


def main() -> None:
    """Refresh every page."""
    for name in page_names():
        before = text = read_page(name)
        for block in blocks_in(name, text):
            text = text.replace(f"```{block.language}\n{block.text}```", f"```{block.language}\n{_fresh(block)}```", 1)
        text = with_region(text, "settings", settings_table(text))
        text = with_region(text, "revisions", revisions_table())
        text = with_region(text, "errors", asyncio.run(errors_table()))
        if text != before:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"{name} changed")


def _fresh(block: Block) -> str:
    if block.source is not None:
        return example_text(block.source)
    if block.language == "console" and commands_of(block):
        return refreshed(block, play(block))
    return block.text


if __name__ == "__main__":
    main()
