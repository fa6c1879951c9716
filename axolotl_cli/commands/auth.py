"""`axolotl auth`: API keys for clients without an authorization server."""

import re
from typing import Annotated

import typer

from axolotl_cli.options import AsJson

_BYTES = 32

auth = typer.Typer(name="auth", no_args_is_help=True, help="Create API keys for clients.")


@auth.callback()
def start() -> None:
    """Create API keys for clients."""


@auth.command("hash-key")
def hash_key(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The name of the key in the settings, which is also the subject of its client."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Create a random API key, and the setting with its hash for the server.

    The key is shown once and stored nowhere. The client sends it in the header Authorization: Bearer.
    """
    import secrets

    from axolotl_server.authentication.api_keys import hash_key as digest_of

    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is None:
        raise typer.BadParameter("use letters, digits, - and _, at most 64 of them", param_hint="NAME")
    key = f"axk_{secrets.token_urlsafe(_BYTES)}"
    if as_json:
        from axolotl_cli.output import print_json

        print_json({"name": name, "key": key, "hash": digest_of(key)})
        return
    typer.echo(f"For the client (shown only once):\n\n  {key}\n")
    typer.echo(f'For axolotl.toml:\n\n  [auth.api_keys.{name}]\n  hash = "{digest_of(key)}"')
