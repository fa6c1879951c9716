"""`axolotl manifest`: files that tell others how to use a server."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axolotl_cli.options import (
    ClientName,
    EntryName,
    EntryTransport,
    EntryUrl,
    EntryVariables,
    EnvFile,
    Scope,
    Target,
    TokenVariable,
    ToolSets,
    WithSecrets,
)

if TYPE_CHECKING:
    from axolotl_cli.clients.entry import ClientEntry


def install(
    client: Annotated[
        ClientName,
        typer.Argument(
            metavar="CLIENT",
            show_choices=False,
            help="claude-code, claude-desktop, cursor, vscode, or json for any other one.",
        ),
    ],
    target: Target = None,
    *,
    name: EntryName = None,
    transport: EntryTransport = None,
    url: EntryUrl = None,
    token_env: TokenVariable = None,
    env: EntryVariables = None,
    with_secrets: WithSecrets = False,
    scope: Annotated[
        Scope, typer.Option(help="For its user everywhere, or for everybody who works in the current directory.")
    ] = Scope.USER,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Another file than the client's usual one.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--print", help="Change the file, or show what belongs into it.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another server of that name.")] = False,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
) -> None:
    """Put a server into the configuration of a client; by default only show what belongs there.

    Everything else in the file stays as it is, comments too, and a copy of it is kept.
    """
    from axolotl_cli.clients.client import CLIENTS
    from axolotl_cli.clients.entry import EntryRequest, entry_for

    path = _path(client, scope, config, write)
    request = EntryRequest(target, toolset, env_file, name, transport, url, token_env, env or (), with_secrets)
    entry = entry_for(CLIENTS[client], request)
    if write and path is not None:
        _write(client, path, entry, force)
    else:
        _print(client, scope, path, entry)
    if not request.is_http:
        _warn(scope, env or [])


def _path(client: ClientName, scope: Scope, config: Path | None, write: bool) -> Path | None:
    from axolotl_cli.clients.client import CLIENTS, Places
    from axolotl_core.errors import ConfigurationError

    if config is not None:
        return config.absolute()
    path = Places.here().file(client, scope)
    if client is ClientName.JSON:
        if write:
            raise ConfigurationError("Nobody knows where the file of another client is: name it with --config")
    elif path is None:
        raise ConfigurationError(f"{CLIENTS[client].title} has no file for a project: leave --scope out")
    elif write and scope is Scope.USER and not path.parent.is_dir():
        raise ConfigurationError(
            f"There is no {path.parent}: start {CLIENTS[client].title} once, or name its file with --config"
        )
    return path


def _write(client: ClientName, path: Path, entry: "ClientEntry", force: bool) -> None:
    from axolotl_cli.clients.client import CLIENTS
    from axolotl_cli.clients.config_file import ClientFile

    file = ClientFile.read(path)
    text = file.with_entry(entry, force=force)
    if text is None:
        typer.echo(f"{entry.name} is in {path} already; nothing was changed.")
        return
    backup = file.write(text)
    typer.echo(f"{entry.name} was written to {path}")
    if backup is not None:
        typer.echo(f"What was there before is in {backup}")
    if CLIENTS[client].afterwards:
        typer.echo(CLIENTS[client].afterwards)


def _print(client: ClientName, scope: Scope, path: Path | None, entry: "ClientEntry") -> None:
    from axolotl_cli.output import print_json

    print_json(entry.document)
    if path is not None:
        typer.echo(f"This belongs into {path}; --write puts it there.", err=True)
    if client is ClientName.CLAUDE_CODE:
        words = ["claude", "mcp", "add-json", "--scope", scope, entry.name, json.dumps(dict(entry.server))]
        typer.echo(f"Or let Claude Code do it:\n\n  {shlex.join(words)}\n", err=True)


def _warn(scope: Scope, given: list[str]) -> None:
    from axolotl_cli.clients.entry import forgotten_variables

    names = forgotten_variables(given)
    warnings = []
    if scope is Scope.PROJECT:
        warnings.append("it names paths of this machine, which others who work on the project do not have")
    if names:
        options = " ".join(f"--env {name}" for name in names)
        warnings.append(f"the client does not know {', '.join(names)}: add {options} if the server needs it")
    for text in warnings:
        typer.echo(f"{typer.style('Warning:', fg='yellow', bold=True)} {text}", err=True)


manifest = typer.Typer(name="manifest", no_args_is_help=True, help="Print files that tell others how to use a server.")


@manifest.command("mcp.json")
def client_manifest(
    target: Target = None,
    *,
    name: EntryName = None,
    transport: EntryTransport = None,
    url: EntryUrl = None,
    token_env: TokenVariable = None,
    env: EntryVariables = None,
    with_secrets: WithSecrets = False,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
) -> None:
    """Print how a client starts the server, or where it finds it, as most clients read it."""
    from axolotl_cli.clients.client import CLIENTS
    from axolotl_cli.clients.entry import EntryRequest, entry_for
    from axolotl_cli.output import print_json

    request = EntryRequest(target, toolset, env_file, name, transport, url, token_env, env or (), with_secrets)
    print_json(entry_for(CLIENTS[ClientName.JSON], request).document)


@manifest.command("server.json")
def registry_manifest(
    target: Target = None,
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Its name in the registry, as io.github.acme/greeter."),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package",
            metavar="KIND:NAME",
            help="What users install: pypi:NAME==VERSION or oci:IMAGE:TAG. Repeat it for others.",
        ),
    ] = None,
    argument: Annotated[
        list[str] | None,
        typer.Option(
            "--argument",
            metavar="WORD",
            help="A word for the package's command line; serve for an image, unless you say something. Repeat it for "
            "others.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="A variable that users of a package have to set. Repeat it for others."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where everybody can reach the server.")
    ] = None,
    repository: Annotated[
        str | None, typer.Option("--repository", metavar="URL", help="Where its source is, at GitHub or GitLab.")
    ] = None,
    env_file: EnvFile = None,
) -> None:
    """Print what a registry of the protocol wants to know; the rest is in the section server of the settings."""
    from axolotl_cli.clients.registry_manifest import Publication, ownership_proofs, server_manifest
    from axolotl_cli.output import print_json
    from axolotl_cli.runtime import settings_ahead
    from axolotl_cli.target import resolve_target

    publication = Publication(name, package or (), argument or (), env or (), url, repository)
    made = server_manifest(settings_ahead(resolve_target(target, env_file=env_file)), publication)
    print_json(made)
    for sentence in ownership_proofs(made):
        typer.echo(sentence, err=True)
