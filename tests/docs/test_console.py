"""Console sessions on the pages show the real output."""

import pytest

from tests.support.docs.pages import ROOT, Block, blocks
from tests.support.docs.sessions import Shell, commands_of, matches

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("block", [pytest.param(block, id=block.place) for block in blocks("console")])
def test_session(block: Block) -> None:
    """Each command prints the shown output; `python -m tests.docs` updates it."""
    for command, printed in zip(commands_of(block), Shell().play(block), strict=True):
        assert matches(command.shown, printed), f"{block.place}: $ {command.line}\n{printed}"


def test_make_serve_is_the_command() -> None:
    """`make serve` is played as the command that its recipe runs."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nserve:")[2]
    assert recipe.splitlines()[1].strip() == "$(BIN)/axolotl serve --demo --transport http $(ARGS)"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\n", "a\nb", False),
        ("took … ms\n", "took 0.3 ms", True),
        ("a\n…\nd\n", "a\nb\nc\nd", True),
        ("a\n…\n", "b\na", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_comparison(shown: str, printed: str, same: bool) -> None:
    """Only the dots may differ."""
    assert matches(shown, printed) is same
