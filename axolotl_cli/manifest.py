"""`axolotl manifest`: files that tell others how to use a server."""

from typing import Annotated

import typer

from axolotl_cli.entry_options import EntryName, EntryTransport, EntryUrl, EntryVariables, TokenVariable, WithSecrets
from axolotl_cli.options import EnvFile, Target, ToolSets
from axolotl_cli.serve import Transport

__all__ = ["client_manifest", "manifest", "registry_manifest"]

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
    from axolotl_cli.additions import Wish, addition_for
    from axolotl_cli.client_names import ClientName
    from axolotl_cli.clients import CLIENTS
    from axolotl_cli.render import print_json

    by_http = url is not None if transport is None else transport is Transport.HTTP
    wish = Wish(target, toolset, env_file, name, by_http, url, token_env, env or (), with_secrets)
    print_json(addition_for(CLIENTS[ClientName.JSON], wish).document)


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
    from axolotl_cli.foresight import settings_ahead
    from axolotl_cli.registry_manifest import Publication, ownership_proofs, server_manifest
    from axolotl_cli.render import print_json
    from axolotl_cli.targets import choose

    publication = Publication(name, package or (), argument or (), env or (), url, repository)
    made = server_manifest(settings_ahead(choose(target, env_file=env_file)), publication)
    print_json(made)
    for sentence in ownership_proofs(made):
        typer.echo(sentence, err=True)
