"""Values of the command line that servers use without Typer."""

from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

VARIABLES: Final = (
    "AXOLOTL_ENV_FILE",
    "AXOLOTL_LOCKED",
    "AXOLOTL_PROFILE",
    "AXOLOTL_SETTINGS",
    "AXOLOTL_TARGET",
    "AXOLOTL_TOOLSETS",
)
"""The environment variables of options, which are not settings."""


class FileOptions(NamedTuple):
    """The files and the profile that a command line names."""

    env_file: Path | None = None
    settings: Path | None = None
    profile: str | None = None


class Level(StrEnum):
    """Log levels."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Transport(StrEnum):
    """How clients reach the server."""

    STDIO = "stdio"
    HTTP = "http"
