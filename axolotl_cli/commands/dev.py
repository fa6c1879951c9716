"""`axolotl dev`: a development server with hot reload and a console."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from axolotl_cli.development.reloader import serve_with_reload
from axolotl_cli.options import FileOptions, LogLevel, Target, ToolSets
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.target import resolve_target
from axolotl_core.errors import ConfigurationError


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
    if find_spec("watchfiles") is None:
        raise ConfigurationError.missing_extra("axolotl dev", "dev")
    http = {key: value for key, value in (("host", host), ("port", port), ("path", path)) if value is not None}
    flags: dict[str, Any] = {"console": {"enabled": True}, **({"http": http} if http else {})}
    if show_arguments:
        flags["console"]["show_arguments"] = True
    if log_level is not None:
        flags["log_level"] = log_level.value
    watched = [path.absolute() for path in watch or []]  # the process may go to the directory of the settings file
    serve_with_reload(resolve_target(target, toolset, flags, files, is_dev=True), watched, principal)
