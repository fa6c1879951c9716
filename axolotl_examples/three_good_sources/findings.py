"""Validation errors as findings, each with its location."""

from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError

_PROBLEMS: Final = {"missing": "required, but missing", "extra_forbidden": "unknown"}


def findings_of(error: ValidationError) -> Iterator[str]:
    """Format Pydantic's errors, for example as `categories[3].sources[1].url: required, but missing`."""
    for finding in error.errors(include_url=False, include_input=False, include_context=False):
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in finding["loc"])
        place = "".join(parts).removeprefix(".") or "the document"
        yield f"{place}: {_PROBLEMS.get(finding['type'], finding['msg'])}"
