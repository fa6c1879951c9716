"""Options of the commands that write a server down for a client."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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


class ClientName(StrEnum):
    """Whose configuration is wanted."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    JSON = "json"


class Scope(StrEnum):
    """For whom a client has a server: for its user everywhere, or for everybody who works on a project."""

    USER = "user"
    PROJECT = "project"


class Transport(StrEnum):
    """How clients reach the server."""

    STDIO = "stdio"
    HTTP = "http"


EntryName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What the client calls the server; else the server's own name."),
]

EntryTransport = Annotated[
    Transport | None,
    typer.Option(
        "--transport",
        "-t",
        help="Whether the client starts the server (stdio) or finds it at a URL (http); stdio, unless a URL is given.",
    ),
]

EntryUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="HTTP: where the server is; else the address in its settings."),
]

EntryVariables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="stdio: a variable for the server. Without a value the client takes it from its own environment, or asks "
        "for it. Repeat it for others.",
    ),
]

TokenVariable = Annotated[
    str | None,
    typer.Option(
        "--token-env",
        metavar="NAME",
        help="HTTP: the client sends the value of this variable as its token; VS Code asks for it instead.",
    ),
]

WithSecrets = Annotated[
    bool, typer.Option("--with-secrets", help="Write values down that look like secrets; else they are refused.")
]
