"""`axolotl install`: a server in the configuration of a client, or in the MCP registry."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from axolotl_cli.clients.client import CLIENTS, ConfigPaths
from axolotl_cli.clients.config_file import ClientFile, InvalidConfigFile
from axolotl_cli.clients.entry import ClientEntry, EntryRequest, entry_for, missing_variables
from axolotl_cli.clients.registry_manifest import server_manifest
from axolotl_cli.options import ClientName, FileOptions, Scope, Target, ToolSets, Transport
from axolotl_cli.output import print_json
from axolotl_cli.runtime import load_server_settings
from axolotl_cli.target import resolve_target
from axolotl_cli.text import warn
from axolotl_core.errors import ConfigurationError

_Client = Annotated[
    ClientName,
    typer.Argument(
        metavar="CLIENT",
        show_choices=False,
        help="claude-code, claude-desktop, cursor, vscode, gemini-cli, or json for any other client; registry for the "
        "server.json of the MCP registry.",
    ),
]

_Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The server's name in the client. Defaults to its own name."),
]

_Transport = Annotated[
    Transport | None,
    typer.Option(
        "--transport",
        "-t",
        help="stdio if the client starts the server, http if it connects to a URL. Defaults to stdio, or to http with "
        "--url.",
    ),
]

_Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="HTTP: the URL of the server. Defaults to the address in its settings."),
]

_Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="stdio: an environment variable for the server; can be repeated. Without a value, the client takes it "
        "from its own environment, or asks for it.",
    ),
]

_TokenVariable = Annotated[
    str | None,
    typer.Option(
        "--token-env",
        metavar="NAME",
        help="HTTP: the environment variable with the token that the client sends; VS Code asks for the token instead.",
    ),
]

_Packages = Annotated[
    list[str] | None,
    typer.Option(
        "--package",
        metavar="KIND:NAME",
        help="registry: a package with the server, pypi:NAME==VERSION or oci:IMAGE:TAG; can be repeated.",
    ),
]


def install(
    client: _Client,
    target: Target = None,
    *,
    name: _Name = None,
    transport: _Transport = None,
    url: _Url = None,
    token_env: _TokenVariable = None,
    env: _Variables = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Write values that look like secrets; otherwise they are refused.")
    ] = False,
    package: _Packages = None,
    uv: Annotated[
        bool, typer.Option("--uv", help="stdio: start the server with uv run, not with the Python of this environment.")
    ] = False,
    scope: Annotated[
        Scope, typer.Option(help="Add it for you in all projects, or for everybody in this project.")
    ] = Scope.USER,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The file to use instead of the client's usual one.")
    ] = None,
    write: Annotated[bool, typer.Option("--write/--print", help="Change the file, or print the entry.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a different server of the same name.")] = False,
    toolset: ToolSets = None,
    files: FileOptions,
) -> None:
    """Add a server to the configuration of an MCP client; by default, only print the entry.

    Other servers and settings in the file stay as they are, and a backup is kept. A file with comments is not changed.
    """
    if client is ClientName.REGISTRY:
        if not package and url is None:
            raise typer.BadParameter("a registry needs a way to get the server: add --package, --url or both")
        settings = load_server_settings(resolve_target(target, files=files))
        print_json(server_manifest(settings, name, package or [], env or [], url))
        return
    path = _path(client, scope, config, write)
    is_shared = scope is Scope.PROJECT
    request = EntryRequest(
        target, toolset, files, name, transport, url, token_env, env or (), with_secrets, uv, is_shared
    )
    entry = entry_for(CLIENTS[client], request)
    if write and path is not None:
        inside = Path.cwd() if is_shared and config is None else None
        _write(ClientFile.read(path, inside), client, path, entry, force=force)
    else:
        _print(client, scope, path, entry)
    if not request.is_http:
        _warn(scope, env or [], uv)


def _path(client: ClientName, scope: Scope, config: Path | None, write: bool) -> Path | None:
    if config is not None:
        return config.absolute()
    path = ConfigPaths.of_this_machine().find(client, scope)
    if client is ClientName.JSON:
        if write:
            raise ConfigurationError("The file of an unknown client must be named: use --config")
    elif path is None:
        raise ConfigurationError(f"{CLIENTS[client].title} has no project file: leave out --scope")
    elif write and scope is Scope.USER and not path.parent.is_dir():
        raise ConfigurationError(
            f"The directory {path.parent} does not exist: start {CLIENTS[client].title} once, or name its file with "
            "--config"
        )
    return path


def _write(file: ClientFile, client: ClientName, path: Path, entry: ClientEntry, *, force: bool) -> None:
    try:
        text = file.with_entry(entry, force=force)
    except InvalidConfigFile as error:
        print_json(entry.document)
        raise ConfigurationError(f"{file.path} was not changed: {error}; add the printed entry yourself") from None
    if text is None:
        typer.echo(f"{entry.name} is already in {path}; nothing was changed.")
        return
    backup = file.write(text)
    typer.echo(f"{entry.name} was written to {path}")
    if backup is not None:
        typer.echo(f"The previous content is in {backup}")
    if CLIENTS[client].next_step:
        typer.echo(CLIENTS[client].next_step)


def _print(client: ClientName, scope: Scope, path: Path | None, entry: ClientEntry) -> None:
    print_json(entry.document)
    if path is not None:
        typer.echo(f"Add this to {path}, or let --write do it.", err=True)
    if client is ClientName.CLAUDE_CODE:
        words = ["claude", "mcp", "add-json", "--scope", scope, entry.name, json.dumps(dict(entry.server))]
        typer.echo(f"Or let Claude Code add it:\n\n  {shlex.join(words)}\n", err=True)


def _warn(scope: Scope, variables: list[str], uv: bool) -> None:
    if scope is Scope.PROJECT and not uv:
        warn("the entry has paths of this machine, which others in the project do not have; use --uv if they have uv")
    names = missing_variables(variables)
    if names:
        options = " ".join(f"--env {name}" for name in names)
        warn(f"the client does not set {', '.join(names)}: add {options} if the server needs it")
