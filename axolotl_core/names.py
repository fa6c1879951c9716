"""Near misses: which name a caller may have meant."""

from collections.abc import Iterable

__all__ = ["nearest"]

_NEAR_ENOUGH = 70.0


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name most like `name`, None if none is near."""
    from rapidfuzz import fuzz, process  # only unhappy calls pay for the import

    candidates = list(known)
    found = process.extract(
        name, candidates, scorer=fuzz.ratio, processor=str.casefold, limit=1, score_cutoff=_NEAR_ENOUGH
    )
    return found[0][0] if found else None
