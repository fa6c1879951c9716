"""Options of the commands that write a server down for a client."""

from typing import Annotated

import typer

from axolotl_cli.serve import Transport

__all__ = ["EntryName", "EntryTransport", "EntryUrl", "EntryVariables", "TokenVariable", "WithSecrets"]

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
