"""Commands for curators and users of a registry: verify, sign, keygen."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import UntrustedRegistry, load_registry, signature_file
from axolotl_examples.three_good_sources.signing import make_key_pair, public_key_file, sign_registry

_UNTRUSTED: Final = 1
_UNUSABLE: Final = 2

app = typer.Typer(
    name=f"python -m {__package__}",
    help="Verify the registry of sources, or sign your own registry.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

RegistryPath = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The registry. Defaults to the registry that is served.")
]


@app.command()
def verify(
    file: RegistryPath = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The trusted public key. Defaults to the key in the package.")
    ] = None,
) -> None:
    """Verify a registry, as the server does at startup.

    The exit code is 1 if the registry is not signed by the trusted curator, and 2 if it is invalid for another reason.
    """
    found = load_registry(_configuration(file, key))
    if found.seal is None:
        typer.echo(f"{found.name}: not signed yet")
    else:
        typer.echo(f"{found.name}: valid signature by {found.registry.curator.name}")
        typer.echo(f"Public Key: {found.seal.public_key}")
    typer.echo(f"Digest: {found.digest}")
    typer.echo(f"Registry Version: {found.registry.version}")


@app.command()
def sign(
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your private key, created with keygen.")],
    file: RegistryPath = None,
) -> None:
    """Sign a registry. The signature is written next to it."""
    path = _configuration(file).registry_file
    public_key = sign_registry(path, key)
    typer.echo(f"{signature_file(path).name}: written, for {public_key}")


@app.command()
def keygen(
    key: Annotated[Path, typer.Option(metavar="FILE", help="The file for the private key.")] = Path("curator.key"),
) -> None:
    """Create a key pair. The public key is written next to the private key."""
    public_key = make_key_pair(key)
    typer.echo(f"{key.name}: the private key; keep it secret, and out of version control")
    typer.echo(f"{public_key_file(key).name}: the public key, {public_key}")


def main() -> None:
    """Run the command line."""
    try:
        app()
    except ConfigurationError as error:
        for finding in error.findings:
            typer.echo(f"Error: {finding}", err=True)
        sys.exit(_UNTRUSTED if isinstance(error, UntrustedRegistry) else _UNUSABLE)


def _configuration(file: Path | None, key: Path | None = None) -> Configuration:
    options = {"registry_file": file, "public_key_file": key}
    return Configuration.from_environment().model_copy(
        update={name: path for name, path in options.items() if path is not None}
    )
