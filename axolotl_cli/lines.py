"""Text that must stay on its line, whoever wrote it."""

import re
from typing import Final

__all__ = ["escape_controls", "one_line"]

_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROLS_WITHIN_LINES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """Write control characters as escapes, line breaks among them."""
    return _CONTROLS.sub(_escape, text)


def escape_controls(text: str) -> str:
    """Write control characters as escapes, save line breaks and tabs."""
    return _CONTROLS_WITHIN_LINES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
