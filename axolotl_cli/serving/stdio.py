"""Serving over stdio."""

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
    """Serve one client, the process at the other end of stdin and stdout."""
    _require_open_streams()
    streams = claim_standard_streams()
    chosen = resolve_target(target, toolsets, flags, env_file)
    early = chosen.settings
    start_logging(early.log_level, early.log)
    run(_serve(chosen.load(), streams))


def _require_open_streams() -> None:
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise ConfigurationError(
                f"{name} is closed, but the stdio transport needs it: open it, or use --transport http"
            ) from error


async def _serve(host: ServerHost, streams: StandardStreams) -> None:
    async with serving(host, lambda settings: settings.stdio.drain_seconds):
        _print_hint(host, streams)
        await serve_stdio(host.handler, host.settings, streams, host.stop_signal)


def _print_hint(host: ServerHost, streams: StandardStreams) -> None:
    """Explain to a person who started the server in a terminal why nothing seems to happen."""
    if os.isatty(streams.incoming):
        offer = enumeration(counted(counts_in(host)))
        typer.echo(f"{host.settings.server.name} serves {offer} over stdio and is waiting for a client.", err=True)
        typer.echo("Use --transport http to serve over HTTP. Press Ctrl-C to stop.", err=True)
