"""The pages of the documentation, and the fenced blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
REPOSITORY: Final = "https://github.com/axolotl-mcp/axolotl/blob/main/"
DOCS: Final = ROOT / "docs"
EXAMPLES: Final = DOCS / "examples"

_BLOCK: Final = re.compile(
    r"^(?:<!-- from (?P<source>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)

_MARKS: Final = re.compile(r"^# (?:end)?region \w+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; a comment above the fence can name its `source`: a file, or a region of a file."""

    page: str
    line: int
    language: str
    text: str
    source: str | None

    @property
    def place(self) -> str:
        """The page and line of the block."""
        return f"{self.page}:{self.line}"


def page_names() -> list[str]:
    """Return the paths of the pages, relative to the root of the repository."""
    found = (page for page in sorted(DOCS.rglob("*.md")) if not page.is_relative_to(EXAMPLES))
    return ["README.md", *(page.relative_to(ROOT).as_posix() for page in found)]


def read_page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(language: str | None = None) -> Iterator[Block]:
    """Find the fenced blocks of all pages, or those in one language."""
    for name in page_names():
        for block in blocks_in(name, read_page(name)):
            if language is None or block.language == language:
                yield block


def blocks_in(name: str, text: str) -> Iterator[Block]:
    """Find the fenced blocks of one page."""
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        yield Block(name, line, match["language"], match["text"], match["source"])


def example_text(source: str) -> str:
    """Read `examples/file.py`, or the text between the marks of `examples/file.py#region`.

    Raises LookupError if there is no such region.
    """
    path, _, region = source.partition("#")
    text = (DOCS / path).read_text(encoding="utf-8")
    if not region:
        return re.sub(r"\n{4,}", "\n\n\n", _MARKS.sub("", text)).rstrip("\n") + "\n"
    found = re.search(rf"^# region {region}\n(.*?)^# endregion {region}$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"docs/{path} has no region {region}")
    return found[1].strip("\n") + "\n"


def region_of(text: str, name: str) -> str:
    """Return the text between the marks `<!-- name:start -->` and `<!-- name:end -->` of a page."""
    return text.partition(f"<!-- {name}:start -->\n")[2].partition(f"<!-- {name}:end -->")[0]


def with_region(text: str, name: str, content: str) -> str:
    """Replace the text between the marks."""
    start, end = f"<!-- {name}:start -->\n", f"<!-- {name}:end -->"
    return text.replace(start + region_of(text, name) + end, start + content + end)
