"""Everything an operator can set, in sections; units stand in the names."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Settings that belong together: read once, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value
