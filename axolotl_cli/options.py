"""Arguments and options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Answers", "AsJson", "EnvFile", "FirstTarget", "Level", "LogLevel", "Target", "ToolSets"]

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        envvar="AXOLOTL_TARGET",
        help="The container: pkg.module:Container or path/file.py:Container; - or none for the settings file's "
        "target, else the starter set.",
    ),
]

FirstTarget = Annotated[
    str, typer.Argument(metavar="TARGET", help="The container, as for serve; - for the default target.")
]
"""The target of commands that have more arguments behind it, so that it cannot be left out."""

ToolSets = Annotated[
    list[str] | None,
    typer.Option(
        "--toolset",
        metavar="NAME",
        envvar="AXOLOTL_TOOLSETS",
        help="Take only this tool set; repeat it, or separate several by commas.",
    ),
]

EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        envvar="AXOLOTL_ENV_FILE",
        help="Read variables that the environment does not have from this file, instead of .env.",
    ),
]

Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="KEY=JSON",
        help="Answer the question of that key, if it is asked; repeat it for others. Questions without an answer are "
        "asked at the terminal.",
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
