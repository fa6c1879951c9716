"""Options that several commands share."""

from collections.abc import Callable
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import typer

VARIABLES: Final = (
    "AXOLOTL_ENV_FILE",
    "AXOLOTL_LOCKED",
    "AXOLOTL_PROFILE",
    "AXOLOTL_SETTINGS",
    "AXOLOTL_TARGET",
    "AXOLOTL_TOOLSETS",
)
"""The environment variables of options, which are not settings."""


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


Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        envvar="AXOLOTL_TARGET",
        help="The container: pkg.module:Container or path/file.py:Container, or a module with tools. Without it, or "
        "with -, the target in the settings file.",
    ),
]

FirstTarget = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET", help="The container, as for serve; - for the default target. Left out with --url."
    ),
]

ToolSets = Annotated[
    list[str] | None,
    typer.Option(
        "--toolset",
        metavar="NAME",
        envvar="AXOLOTL_TOOLSETS",
        help="Use only this tool set. Repeat the option, or separate names with commas.",
    ),
]


class FileOptions(NamedTuple):
    """The files and the profile that a command line names."""

    env_file: Annotated[
        Path | None,
        typer.Option(
            "--env-file",
            metavar="FILE",
            envvar="AXOLOTL_ENV_FILE",
            help="Read variables that are not in the environment from this file instead of .env.",
        ),
    ] = None
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            envvar="AXOLOTL_SETTINGS",
            help="Read this settings file instead of axolotl.toml.",
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="NAME", envvar="AXOLOTL_PROFILE", help="Use this profile of the settings file."
        ),
    ] = None


class RemoteOptions(NamedTuple):
    """The running server that a command line names, if any."""

    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="Use the running server at this URL instead of a container: leave TARGET out."
        ),
    ] = None
    token_env: Annotated[
        str | None,
        typer.Option(
            "--token-env", metavar="NAME", help="With --url: the environment variable that contains the token."
        ),
    ] = None
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="DATE", help="With --url: the protocol revision. Defaults to the latest."),
    ] = None

    def check(self, *for_containers: object) -> None:
        """Raise BadParameter for options that have no effect."""
        if self.url is None and (self.token_env or self.revision):
            raise typer.BadParameter("--token-env and --revision are for running servers: add --url URL")
        if self.url is not None and any(for_containers):
            raise typer.BadParameter(
                "--url names a running server, which identifies its callers by their tokens: leave out TARGET and --as"
            )


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of each group, a named tuple, in place of the parameter for the group."""
    parameters = signature(command).parameters
    groups = {one.name: one.annotation for one in parameters.values() if hasattr(one.annotation, "_fields")}
    if not groups:
        return command

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(*(values.pop(field) for field in group._fields))
        command(**values)

    options: dict[str, Any] = {}
    for one in parameters.values():
        hints = get_type_hints(groups[one.name], include_extras=True) if one.name in groups else {}
        added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint) for name, hint in hints.items()]
        options.update({option.name: option for option in added or [one.replace(kind=Parameter.KEYWORD_ONLY)]})
    run.__signature__ = Signature([*options.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: option.annotation for name, option in options.items()}
    run.__doc__ = command.__doc__
    return with_groups(run)  # a group may have groups


Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="KEY=JSON",
        help="The answer to the question with this key, if it is asked; can be repeated. Other questions are asked at "
        "the terminal.",
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

LogLevel = Annotated[
    Level | None,
    typer.Option(
        "--log-level",
        "-l",
        metavar="LEVEL",
        case_sensitive=False,
        help="The lowest level of messages to log: debug, info, warning or error.",
    ),
]


class ClientName(StrEnum):
    """MCP clients whose configuration files are known; `json` stands for all others, `registry` for the registry."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    GEMINI_CLI = "gemini-cli"
    JSON = "json"
    REGISTRY = "registry"


class Scope(StrEnum):
    """Who has the server in the client: one user, or everybody who works on a project."""

    USER = "user"
    PROJECT = "project"
