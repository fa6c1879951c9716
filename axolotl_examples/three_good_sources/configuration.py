"""What an operator can set: THREE_GOOD_SOURCES_THRESHOLD and its like, read once from the environment."""

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
    """Which registry is served, whose signature is trusted, and how close a match must be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry_file: Path = _PACKAGE / "registry.json"
    public_key_file: Path | None = _PACKAGE / "curator.pub"
    """The trusted key; None (an empty value) serves a registry that is not signed yet."""
    threshold: float = Field(0.4, ge=0, le=1)
    """The score below which there is no match, where a call does not say otherwise."""
    keyword_weight: float = Field(0.25, ge=0, le=1)
    """The share of a score that keywords make; patterns make the rest."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Configuration":
        """Read the variables that begin with THREE_GOOD_SOURCES_.

        Raises:
            ConfigurationError: if a value is wrong, or a name unknown.
        """
        said = {
            name.removeprefix(_PREFIX).lower(): value or None
            for name, value in environment.items()
            if name.startswith(_PREFIX)
        }
        try:
            return cls.model_validate(said)
        except ValidationError as error:
            raise ConfigurationError(*map(_named, findings_of(error))) from None


def _named(finding: str) -> str:
    place, _, problem = finding.partition(": ")
    return f"{_PREFIX}{place.upper()}: {problem}"
