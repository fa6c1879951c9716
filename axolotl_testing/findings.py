"""Findings in the message of a failed test, one per line."""

from collections.abc import Sequence
from typing import Final

_SHOWN: Final = 20


def indented(findings: Sequence[str]) -> str:
    """Write each finding on a line of its own, but not more than twenty."""
    more = [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "".join(f"\n  {one}" for one in [*findings[:_SHOWN], *more])
