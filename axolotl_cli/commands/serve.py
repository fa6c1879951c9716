"""`axolotl serve`: a server over stdio or HTTP."""

from typing import Annotated

import typer

from axolotl_cli.arguments import Transport
from axolotl_cli.options import EnvFile, LogLevel, Profile, SettingsFile, Target, ToolSets
from axolotl_cli.serving.serve_arguments import ServeArguments


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
    env_file: EnvFile = None,
    settings: SettingsFile = None,
    profile: Profile = None,
    locked: Annotated[
        bool,
        typer.Option(
            "--locked", envvar="AXOLOTL_LOCKED", help="Do not start if the features differ from axolotl.lock.json."
        ),
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Serve example tools instead of a target.")] = False,
) -> None:
    """Serve the tools, prompts and resources of a container."""
    arguments = ServeArguments(
        target, transport, host, port, path, workers, toolset, log_level, env_file, settings, profile, locked, demo
    )
    if arguments.mistake is not None:
        raise typer.BadParameter(arguments.mistake)
    arguments.serve()
