"""Our own keys of `_meta` in results, and of the data of errors."""

from collections.abc import Mapping
from typing import Any, Final

META_PREFIX: Final = "axolotl/"
"""The beginning of all keys of `_meta` that belong neither to the protocol nor to the user's code."""


def own_meta(**details: Any) -> dict[str, Any]:
    """Return details of a result as they stand in its `_meta`."""
    return {f"{META_PREFIX}{name}": detail for name, detail in details.items()}


def error_data(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the `_meta` of a failure as the data of a JSON-RPC error, whose keys have no prefix."""
    return None if meta is None else {name.removeprefix(META_PREFIX): detail for name, detail in meta.items()}
