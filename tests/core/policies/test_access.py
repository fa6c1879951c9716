"""Decisions, and errors that carry them."""

import pytest

from axolotl_core.errors import Forbidden, ToolNotFound
from axolotl_core.policies.access import Decision, IAuthorizer, decision_behind, with_decision

DENIED = Decision(False, "no money", "it says so")


@pytest.mark.parametrize("error", [Forbidden("no", meta={"reason": "forbidden"}), ToolNotFound("refund")])
def test_an_error_carries_its_decision(error: Exception) -> None:
    """An error carries its decision for records; its text and data do not change."""
    before = str(error), getattr(error, "meta", None), getattr(error, "data", None)
    assert with_decision(error, DENIED) is error
    assert decision_behind(error) is DENIED
    assert (str(error), getattr(error, "meta", None), getattr(error, "data", None)) == before


def test_most_errors_carry_none() -> None:
    """An error without a decision has none."""
    with_decision(Forbidden("no"), DENIED)
    assert decision_behind(Forbidden("no")) is None
    assert decision_behind(KeyboardInterrupt()) is None


def test_a_decision_does_not_change() -> None:
    """A decision cannot be changed."""
    with pytest.raises(AttributeError, match="immutable"):
        DENIED.allowed = True  # type: ignore[misc]


def test_an_authorizer_must_decide() -> None:
    """An authorizer must implement `decide`."""
    with pytest.raises(TypeError, match="decide"):
        IAuthorizer()  # type: ignore[abstract]
