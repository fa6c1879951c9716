"""`axolotl serve`: a server over stdio or HTTP."""

from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from axolotl_cli.options import FileOptions, LogLevel, Target, ToolSets, Transport
from axolotl_cli.target import STARTER, resolve_target
from axolotl_core.errors import ConfigurationError


def serve(
    target: Target = None,
    *,
    transport: Annotated[
        Transport, typer.Option("--transport", "-t", help="How clients reach the server.")
    ] = Transport.STDIO,
    host: Annotated[str | None, typer.Option(help="HTTP: the address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="HTTP: the port; 0 picks a free one.")
    ] = None,
    path: Annotated[str | None, typer.Option(help="HTTP: the path of the endpoint.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="HTTP: the number of worker processes.")
    ] = None,
    toolset: ToolSets = None,
    log_level: LogLevel = None,
    files: FileOptions,
    locked: Annotated[
        bool,
        typer.Option(
            "--locked", envvar="AXOLOTL_LOCKED", help="Do not start if the features differ from axolotl.lock.json."
        ),
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Serve example tools instead of a target.")] = False,
) -> None:
    """Serve the tools, prompts and resources of a container."""
    if demo and target is not None:
        raise typer.BadParameter("--demo serves example tools instead of a target: leave one of them out")
    options = (("host", host), ("port", port), ("path", path), ("workers", workers))
    http = {key: value for key, value in options if value is not None}
    if http and transport is Transport.STDIO:
        names = ", ".join(f"--{name}" for name in http)
        raise typer.BadParameter(f"{names} has no effect over stdio: add --transport http")
    flags: dict[str, Any] = {"http": http} if http else {}
    if log_level is not None:
        flags["log_level"] = log_level.value
    if demo and find_spec("pathspec") is None:
        raise ConfigurationError.missing_extra("--demo", "examples")
    if transport is Transport.STDIO:
        from axolotl_cli.serving.stdio import serve_over_stdio as serve_over
    else:
        from axolotl_cli.serving.http import serve_over_http as serve_over
    serve_over(partial(resolve_target, STARTER if demo else target, toolset, flags, files), is_locked=locked)
