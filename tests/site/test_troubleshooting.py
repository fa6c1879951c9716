"""The page about troubleshooting: its headings are messages of the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.support.docs.pages import ROOT, read_page

PAGE = "docs/reference/troubleshooting.md"


def test_headings_are_messages() -> None:
    """A heading is the exact text of a message, so that searching for it finds the page."""
    texts = set(_texts())
    unknown = [heading for heading in _headings() if not any(heading in text for text in texts)]
    assert not unknown


def _headings() -> list[str]:
    return re.findall(r"^### `(.+)`$", read_page(PAGE), re.MULTILINE)


def _texts() -> Iterator[str]:
    for tree in _trees():
        for node in ast.walk(tree):
            text = _text(node)
            if text is not None:
                yield text


@cache
def _trees() -> list[ast.Module]:
    files = [file for package in ("core", "server", "cli") for file in (ROOT / f"axolotl_{package}").rglob("*.py")]
    return [ast.parse(file.read_text(encoding="utf-8")) for file in files]


def _text(node: ast.AST) -> str | None:
    """Return the text of a string, with `…` for each value in it."""
    match node:
        case ast.Constant(value=str(text)):
            found = text
        case ast.JoinedStr(values=parts):
            found = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            return None
    return re.sub(r"%(?:\.\d)?[sdfr]|…+", "…", found.replace("\n", " "))
