"""`axolotl dev`: a development server with hot reload and a console."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axolotl_cli.development.reloader import serve_with_reload
from axolotl_cli.options import FileOptions, Level, LogLevel, Target, ToolSets
from axolotl_cli.principal import ActingPrincipal


def dev(
    target: Target = None,
    *,
    host: Annotated[str | None, typer.Option(help="The loopback address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="The port; 0 picks a free one.")
    ] = None,
    path: Annotated[str | None, typer.Option(help="The path of the endpoint.")] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Watch this directory instead of the current one; can be repeated."),
    ] = None,
    show_arguments: Annotated[
        bool, typer.Option("--show-arguments", help="Print the arguments of calls, except sensitive ones.")
    ] = False,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    log_level: LogLevel = None,
    files: FileOptions,
) -> None:
    """Serve on this machine with hot reload, a line for each call, and a console at /console."""
    http = {key: value for key, value in (("host", host), ("port", port), ("path", path)) if value is not None}
    serve_with_reload(
        target,
        toolset,
        _flags(http, log_level, show_arguments),
        files,
        watch or [],
        principal=principal,
    )


def _flags(http: dict[str, Any], log_level: Level | None, show_arguments: bool) -> dict[str, Any]:
    console = {"enabled": True, **({"show_arguments": True} if show_arguments else {})}
    flags: dict[str, Any] = {"console": console, **({"http": http} if http else {})}
    return flags if log_level is None else {**flags, "log_level": log_level.value}
