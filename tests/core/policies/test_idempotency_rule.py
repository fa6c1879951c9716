"""The rule for idempotency."""

from typing import Any

import pytest

from axolotl_core import ConfigurationError
from axolotl_core.policies.tool_rules import Idempotency


@pytest.mark.parametrize("wrong", [{"window_seconds": 0}, {"window_seconds": float("inf")}, {"key": ""}, {"key": ()}])
def test_a_rule_without_sense(wrong: dict[str, Any]) -> None:
    """Invalid values raise ConfigurationError."""
    with pytest.raises(ConfigurationError, match="Idempotency has"):
        Idempotency(**wrong)


def test_the_arguments_of_a_key() -> None:
    """A key consists of one argument, of several, or of a digest of all."""
    assert Idempotency().arguments == ()
    assert Idempotency(key="a").arguments == ("a",)
    assert Idempotency(key=("a", "b")).arguments == ("a", "b")
