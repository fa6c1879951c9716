"""Code on the pages is code that runs: it stands in a file, and the file is tested."""

import json
import re
import tomllib

import pytest

from tests.docs.pages import Block, blocks, example_text, page_names, read_page

_FROM_FILES = {"dockerfile", "nginx", "python", "toml", "yaml"}
_LANGUAGES = {"console", "json", "sh", "text", *_FROM_FILES}


def _places(found: list[Block]) -> list[str]:
    return [block.place for block in found]


def test_fences_are_understood() -> None:
    """Every fence is found by the tests, and says what language it holds."""
    for name in page_names():
        fences = re.findall(r"^\s*```", read_page(name), re.MULTILINE)
        assert len(fences) == 2 * sum(block.page == name for block in blocks()), name
    assert not _places([block for block in blocks() if block.language not in _LANGUAGES])


def test_code_has_a_file() -> None:
    """Nothing that runs, and no settings, stand on a page alone."""
    assert not _places([block for block in blocks() if block.language in _FROM_FILES and block.source is None])


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=block.place) for block in blocks() if block.source is not None]
)
def test_code_is_the_file(block: Block) -> None:
    """A block equals the file, or the region of a file, that it names; `python -m tests.docs` writes it again."""
    assert block.source is not None
    assert block.text == example_text(block.source)


def test_json_and_toml_are_valid() -> None:
    """What looks like JSON or TOML is."""
    for block in blocks("json"):
        json.loads(block.text)
    for block in blocks("toml"):
        tomllib.loads(block.text)
