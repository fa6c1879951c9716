"""`axolotl dev`: serve over HTTP, with a console, and take over changes of the code as they are saved."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axolotl_cli.options import EnvFile, Level, LogLevel, Target, ToolSets


def dev(
    target: Target = None,
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen at; a loopback one.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = None,
    path: Annotated[str | None, typer.Option(help="The path of the endpoint.")] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Watch this directory instead of the current one; repeat it for others."),
    ] = None,
    show_arguments: Annotated[
        bool, typer.Option("--show-arguments", help="Show the arguments of calls, without what is sensitive.")
    ] = False,
    toolset: ToolSets = None,
    log_level: LogLevel = None,
    env_file: EnvFile = None,
) -> None:
    """Serve to this machine while you write the code: changes are taken over, calls are shown, /console is on."""
    from axolotl_cli.development.reloader import serve_while_developing

    http = {key: value for key, value in (("host", host), ("port", port), ("path", path)) if value is not None}
    serve_while_developing(target, toolset, _flags(http, log_level, show_arguments), env_file, watch or [])


def _flags(http: dict[str, Any], log_level: Level | None, show_arguments: bool) -> dict[str, Any]:
    console = {"enabled": True, **({"show_arguments": True} if show_arguments else {})}
    flags: dict[str, Any] = {"console": console, **({"http": http} if http else {})}
    return flags if log_level is None else {**flags, "log_level": log_level.value}
