"""The command line of curators and of those who trust them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import RegistryFile, UntrustedRegistry, load_registry, signature_file
from axolotl_examples.three_good_sources.signing import make_key_pair, public_key_file, sign_registry

_UNTRUSTED: Final = 1
_UNUSABLE: Final = 2

app = typer.Typer(
    name=f"python -m {__package__}",
    help="Verify the registry of three good sources, or sign one of your own.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

RegistryPath = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The registry; the one that is served where it is left out.")
]


@app.command()
def verify(
    file: RegistryPath = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The public key to trust instead of the one in the package.")
    ] = None,
) -> None:
    """Verify a registry as the server does before it serves it.

    The exit code is 1 if it is not what the trusted curator signed, 2 if it cannot be used for another reason.
    """
    for line in _portrait(load_registry(_configuration(file, key))):
        typer.echo(line)


@app.command()
def sign(
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your private key, as keygen makes it.")],
    file: RegistryPath = None,
) -> None:
    """Sign a registry: write its signature beside it."""
    path = _configuration(file).registry_file
    public_key = sign_registry(path, key)
    typer.echo(f"{signature_file(path).name}: written, for {public_key}")


@app.command()
def keygen(
    key: Annotated[Path, typer.Option(metavar="FILE", help="Where the private key is written.")] = Path("curator.key"),
) -> None:
    """Make a key pair; the public key is written beside the private one."""
    public_key = make_key_pair(key)
    typer.echo(f"{key.name}: the private key; keep it to yourself, and out of version control")
    typer.echo(f"{public_key_file(key).name}: the public key, {public_key}")


def main() -> None:
    """Run the command that the process was started with."""
    try:
        app()
    except ConfigurationError as error:
        for finding in error.findings:
            typer.echo(f"Error: {finding}", err=True)
        sys.exit(_UNTRUSTED if isinstance(error, UntrustedRegistry) else _UNUSABLE)


def _configuration(file: Path | None, key: Path | None = None) -> Configuration:
    """Put what the command line says over what the server would use."""
    said = {"registry_file": file, "public_key_file": key}
    return Configuration.from_environment().model_copy(
        update={name: path for name, path in said.items() if path is not None}
    )


def _portrait(file: RegistryFile) -> Iterator[str]:
    registry = file.registry
    if file.seal is None:
        yield f"{file.name}: not signed yet"
    else:
        yield f"{file.name}: as {registry.curator.name} signed it"
        yield f"Public Key: {file.seal.public_key}"
    yield f"Digest: {file.digest}"
    yield f"Registry Version: {registry.version}"
