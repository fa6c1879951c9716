"""The settings of this system, read from environment variables."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources.findings import findings_of

_PREFIX: Final = "THREE_GOOD_SOURCES_"
_PACKAGE: Final = Path(__file__).parent


class Configuration(BaseModel):
    """Settings, each read from a variable such as `THREE_GOOD_SOURCES_THRESHOLD`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry_file: Path = _PACKAGE / "registry.json"
    public_key_file: Path | None = _PACKAGE / "curator.pub"
    """The trusted key. With None (an empty value), an unsigned registry is served."""
    threshold: float = Field(0.4, ge=0, le=1)
    """The minimum score of a match, unless a call sets its own."""
    keyword_weight: float = Field(0.25, ge=0, le=1)
    """The share of keywords in a score. The rest comes from patterns."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Configuration":
        """Read the variables that begin with THREE_GOOD_SOURCES_.

        Raises `ConfigurationError` if a value is invalid or a name is unknown.
        """
        values = {
            name.removeprefix(_PREFIX).lower(): value or None
            for name, value in environment.items()
            if name.startswith(_PREFIX)
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigurationError(*map(_with_variable_name, findings_of(error))) from None


def _with_variable_name(finding: str) -> str:
    place, _, problem = finding.partition(": ")
    return f"{_PREFIX}{place.upper()}: {problem}"
