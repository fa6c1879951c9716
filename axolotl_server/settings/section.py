"""The base class of all sections of the settings."""

from typing import Final

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Section(BaseModel):
    """A table of settings: immutable, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


LOWER_CASE: Final = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""Accepts a word in any case."""
