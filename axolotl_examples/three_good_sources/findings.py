"""Validation errors as findings, each with its location."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError


def findings_of(error: ValidationError) -> Iterator[str]:
    """Format Pydantic's errors, for example as `categories[3].sources[1].url: required, but missing`."""
    for finding in error.errors(include_url=False, include_input=False, include_context=False):
        yield f"{_place(finding['loc'])}: {_problem(finding)}"


def _place(location: Sequence[int | str]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".") or "the document"


def _problem(finding: Any) -> str:
    match finding["type"]:
        case "missing":
            return "required, but missing"
        case "extra_forbidden":
            return "unknown"
        case _:
            return str(finding["msg"])
