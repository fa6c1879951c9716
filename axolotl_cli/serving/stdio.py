"""Serving over the standard streams."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from axolotl_cli.logs import start_logging
from axolotl_cli.runtime import run, serving
from axolotl_cli.target import resolve_target
from axolotl_cli.text import counted, counts_in, enumeration
from axolotl_core.errors import ConfigurationError
from axolotl_server.host import ServerHost
from axolotl_server.transports.pipes import StandardStreams, claim_standard_streams
from axolotl_server.transports.stdio import serve_stdio


def serve_over_stdio(
    target: str | None, toolsets: Sequence[str] | None, flags: Mapping[str, Any], env_file: Path | None = None
) -> None:
    """Serve one client, the process that holds the other ends of the streams.

    Raises:
        ConfigurationError: if the server cannot start.
    """
    _require_open_streams()
    streams = claim_standard_streams()
    choice = resolve_target(target, toolsets, flags, env_file)
    early = choice.settings
    start_logging(early.log_level, early.log)
    run(_serve(choice.load(), streams))


def _require_open_streams() -> None:
    for descriptor, name in enumerate(("input", "output", "error stream")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise ConfigurationError(
                f"The standard {name} is closed: stdio needs it, or use --transport http"
            ) from error


async def _serve(host: ServerHost, streams: StandardStreams) -> None:
    async with serving(host, lambda settings: settings.stdio.drain_seconds):
        _greet_a_person(host, streams)
        await serve_stdio(host.handler, host.settings, streams, host.ending)


def _greet_a_person(host: ServerHost, streams: StandardStreams) -> None:
    """Say what happens to someone who started the server in a terminal, where nothing seems to happen."""
    if os.isatty(streams.incoming):
        offer = enumeration(counted(counts_in(host)))
        typer.echo(f"{host.settings.server.name} serves {offer} over stdio and waits for a client.", err=True)
        typer.echo("Use --transport http to serve over HTTP. Press Ctrl-C to stop.", err=True)
