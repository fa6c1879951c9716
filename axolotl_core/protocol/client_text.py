"""Text of clients that errors repeat."""

from typing import Final

MAX_ECHO: Final = 128
"""How many characters of a client's text an error repeats."""


def shorten(text: str) -> str:
    """Cut a client's text for an error."""
    return text if len(text) <= MAX_ECHO else f"{text[:MAX_ECHO]}…"
