"""Code blocks on the pages come from tested files."""

import json
import re
import tomllib

import pytest

from tests.support.docs.pages import Block, blocks, example_text, page_names, read_page

_FROM_FILES = {"dockerfile", "markdown", "nginx", "python", "toml", "yaml"}
_LANGUAGES = {"console", "json", "sh", "text", *_FROM_FILES}


def _places(found: list[Block]) -> list[str]:
    return [block.place for block in found]


def test_fences_are_understood() -> None:
    """The tests find every fence, and every fence names its language."""
    for name in page_names():
        fences = re.findall(r"^\s*```", read_page(name), re.MULTILINE)
        assert len(fences) == 2 * sum(block.page == name for block in blocks()), name
    assert not _places([block for block in blocks() if block.language not in _LANGUAGES])


def test_code_has_a_file() -> None:
    """All code and settings on a page come from a file."""
    assert not _places([block for block in blocks() if block.language in _FROM_FILES and block.source is None])


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=block.place) for block in blocks() if block.source is not None]
)
def test_code_is_the_file(block: Block) -> None:
    """A block equals its file or region; `python -m tests.docs` updates it."""
    assert block.source is not None
    assert block.text == example_text(block.source)


def test_json_and_toml_are_valid() -> None:
    """JSON and TOML blocks are valid."""
    for block in blocks("json"):
        json.loads(block.text)
    for block in blocks("toml"):
        tomllib.loads(block.text)
