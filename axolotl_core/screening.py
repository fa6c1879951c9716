"""Values that lead out of their place: what a path made of them would do is not what its author meant."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote

__all__ = ["Screenable", "screen"]

Screenable: TypeAlias = str | Sequence[str]

_MOST_DECODINGS = 3
_SEPARATOR = re.compile(r"[/\\]")
_OUT_OF_PLACE = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|\A/|\A[A-Za-z]:")


def screen(values: Mapping[str, Screenable], unscreened: Collection[str]) -> str | None:
    """Name the first variable whose value leads out of its place; those in `unscreened` are not looked at.

    Such a value has a segment `.` or `..`, a control character or a backslash, or starts like an absolute path with a
    slash or a drive letter; percent-encoded again it is the same value, and one encoded more than thrice is refused.
    """
    for name, value in values.items():
        if name not in unscreened and any(map(_leads_out, _paths_of(value))):
            return name
    return None


def _paths_of(value: Screenable) -> Iterator[str]:
    """Yield what a path may be made of: a text, each part of a list, and the parts joined."""
    if isinstance(value, str):
        yield value
    else:
        yield from value
        yield "/".join(value)


def _leads_out(text: str) -> bool:
    for _ in range(_MOST_DECODINGS + 1):
        if _OUT_OF_PLACE.search(text) or not {".", ".."}.isdisjoint(_SEPARATOR.split(text)):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True
