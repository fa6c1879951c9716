"""Random values as returned by a JSON decoder."""

from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def mostly(key: str, *values: Any) -> st.SearchStrategy[Any]:
    """Generate a member of an object: usually one of these values, sometimes nothing or anything."""
    chosen = st.integers(0, 9).flatmap(lambda number: st.sampled_from(values) if number else JSON)
    return chosen.map(lambda value: {key: value}) | st.just({})


def objects(*members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Combine members into an object, with additional ones."""
    extra = st.dictionaries(st.text(max_size=8), JSON, max_size=2)
    return st.builds(lambda *parts: {key: value for part in parts for key, value in part.items()}, extra, *members)
