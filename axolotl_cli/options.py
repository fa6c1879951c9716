"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import typer

from axolotl_cli.arguments import Level, Transport
from axolotl_cli.completion import completing

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        envvar="AXOLOTL_TARGET",
        help="The container: pkg.module:Container or path/file.py:Container. Without it, or with -, the target in the "
        "settings file.",
    ),
]


def first_target(kind: str, key: str = "name") -> Any:
    """Describe the target of a command with more arguments after it; with a URL, it is the first of those."""
    return typer.Argument(
        metavar="TARGET",
        help="The container, as for serve; - for the default target. Not used with --url.",
        autocompletion=completing(kind, key, is_first=True),
    )


ToolSets = Annotated[
    list[str] | None,
    typer.Option(
        "--toolset",
        metavar="NAME",
        envvar="AXOLOTL_TOOLSETS",
        help="Use only this tool set. Repeat the option, or separate names with commas.",
    ),
]

EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        envvar="AXOLOTL_ENV_FILE",
        help="Read variables that are not in the environment from this file instead of .env.",
    ),
]

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        envvar="AXOLOTL_SETTINGS",
        help="Read this settings file instead of axolotl.toml.",
    ),
]

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        envvar="AXOLOTL_PROFILE",
        help="Use this profile of the settings file.",
    ),
]


ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Use the running server at this URL instead of a container: leave TARGET out."
    ),
]

ServerToken = Annotated[
    str | None,
    typer.Option("--token-env", metavar="NAME", help="With --url: the environment variable that contains the token."),
]

ServerRevision = Annotated[
    str | None,
    typer.Option("--revision", metavar="DATE", help="With --url: the protocol revision. Defaults to the latest."),
]


class RemoteOptions(NamedTuple):
    """The running server that a command line names, if any."""

    url: str | None = None
    token_variable: str | None = None
    revision: str | None = None

    @classmethod
    def of(cls, url: str | None, token_variable: str | None, revision: str | None, *for_containers: object) -> Self:
        """Check the options; raises BadParameter for options that have no effect."""
        if url is None and (token_variable or revision):
            raise typer.BadParameter("--token-env and --revision are for running servers: add --url URL")
        if url is not None and any(for_containers):
            raise typer.BadParameter(
                "--url names a running server, which identifies its callers by their tokens: leave out TARGET, --as, "
                "--role, --scope and --tenant"
            )
        return cls(url, token_variable, revision)


Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="KEY=JSON",
        help="The answer to the question with this key, if it is asked; can be repeated. Other questions are asked at "
        "the terminal.",
    ),
]

Traceback = Annotated[
    bool,
    typer.Option("--traceback", help="Show all frames of tracebacks, not only those of your own code."),
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
    """MCP clients whose configuration files are known; `json` stands for all others."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    GEMINI_CLI = "gemini-cli"
    GOOSE = "goose"
    JSON = "json"


class Scope(StrEnum):
    """Who has the server in the client: one user, or everybody who works on a project."""

    USER = "user"
    PROJECT = "project"


EntryName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The server's name in the client. Defaults to its own name."),
]

EntryTransport = Annotated[
    Transport | None,
    typer.Option(
        "--transport",
        "-t",
        help="stdio if the client starts the server, http if it connects to a URL. Defaults to stdio, or to http with "
        "--url.",
    ),
]

EntryUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="HTTP: the URL of the server. Defaults to the address in its settings."),
]

EntryVariables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="stdio: an environment variable for the server; can be repeated. Without a value, the client takes it "
        "from its own environment, or asks for it.",
    ),
]

TokenVariable = Annotated[
    str | None,
    typer.Option(
        "--token-env",
        metavar="NAME",
        help="HTTP: the environment variable with the token that the client sends; VS Code asks for the token instead.",
    ),
]

WithSecrets = Annotated[
    bool, typer.Option("--with-secrets", help="Write values that look like secrets; otherwise they are refused.")
]
