"""How important a log message is."""

from typing import Final, Literal, TypeAlias, get_args

__all__ = ["LEVELS", "LogLevel", "reaches"]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[str, ...]] = get_args(LogLevel)
"""All levels, the least important first."""


def reaches(level: str, wanted: str) -> bool:
    """Tell whether a message of `level` is important enough for someone who wants `wanted` and above."""
    return LEVELS.index(level) >= LEVELS.index(wanted)
