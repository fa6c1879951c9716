"""Arguments and options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["AsJson", "Level", "LogLevel", "Target", "ToolSets"]

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        envvar="AXOLOTL_TARGET",
        help="The container: pkg.module:Container or path/file.py:Container; - or none for the settings file's "
        "target, else the starter set.",
    ),
]

ToolSets = Annotated[
    list[str] | None,
    typer.Option(
        "--toolset",
        metavar="NAME",
        envvar="AXOLOTL_TOOLSETS",
        help="Take only this tool set; repeat it, or separate several by commas.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]


class Level(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevel = Annotated[
    Level | None,
    typer.Option("--log-level", "-l", case_sensitive=False, help="The least important messages that are logged."),
]
