"""Near misses: which name a caller may have meant."""

from collections.abc import Iterable

__all__ = ["nearest"]

_NEAR_ENOUGH = 70.0


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name most like `name`, None if none is near."""
    from rapidfuzz import fuzz, process  # only unhappy calls pay for the import

    found = process.extractOne(name.casefold(), list(known), scorer=fuzz.ratio, processor=str.casefold)
    return found[0] if found is not None and found[1] >= _NEAR_ENOUGH else None
