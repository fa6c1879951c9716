"""The page about troubleshooting: its headings are messages of the source, and no refusal is missing."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.api.recording import public_api
from tests.support.docs.pages import ROOT, read_page

PAGE = "docs/reference/troubleshooting.md"
ELSEWHERE = {
    "Bad request: …",
    "Forbidden: …",
    "Unauthorized: …",
    "Service unavailable: …; try again later",
}
"""Messages that are nothing but a prefix of others."""


def test_headings_are_messages() -> None:
    """A heading is the exact text of a message, so that searching for it finds the page."""
    texts = set(_texts())
    unknown = [heading for heading in _headings() if not any(heading in text for text in texts)]
    assert not unknown


def test_every_refusal_has_an_entry() -> None:
    """Everything that refuses a request over HTTP is explained, except by the console."""
    refusals = {text for text in _refusals() if "console" not in text} - ELSEWHERE
    assert refusals - set(_headings()) == set()


def test_every_reason_is_explained() -> None:
    """The page names every machine-readable reason."""
    reasons = {line.removeprefix("reason ") for line in public_api() if line.startswith("reason ")}
    page = read_page(PAGE)
    assert {reason for reason in reasons if f"`{reason}`" not in page} == set()


def _headings() -> list[str]:
    return re.findall(r"^### `(.+)`$", read_page(PAGE), re.MULTILINE)


def _texts() -> Iterator[str]:
    for tree in _trees():
        for node in ast.walk(tree):
            text = _text(node)
            if text is not None:
                yield text


def _refusals() -> Iterator[str]:
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HttpRefusal":
                text = _text(node.args[1]) if len(node.args) > 1 else None
                if text:
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
