"""Log levels, as in syslog."""

import itertools
from typing import get_args

import pytest

from axolotl_core.protocol.messages import LEVELS, LogLevel, is_at_least

ORDER = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def test_the_levels_are_those_of_the_protocol() -> None:
    """There are eight levels, the least severe first, as in the type."""
    assert list(LEVELS) == ORDER
    assert set(get_args(LogLevel)) == set(LEVELS)


@pytest.mark.parametrize(("level", "wanted"), list(itertools.product(ORDER, ORDER)))
def test_levels_are_ordered(level: str, wanted: str) -> None:
    """A level is at least as severe as itself and all less severe ones."""
    assert is_at_least(level, wanted) is (ORDER.index(level) >= ORDER.index(wanted))


@pytest.mark.parametrize(("level", "wanted"), [("loud", "info"), ("info", "loud"), ("INFO", "info"), ("info", "")])
def test_unknown_levels_are_refused(level: str, wanted: str) -> None:
    """An unknown level raises ValueError."""
    with pytest.raises(ValueError, match="not in tuple"):
        is_at_least(level, wanted)
