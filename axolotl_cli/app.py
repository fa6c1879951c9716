"""The Typer application and its commands."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from axolotl_cli.commands.audit import audit
from axolotl_cli.commands.auth import auth
from axolotl_cli.commands.call import call, prompt, read
from axolotl_cli.commands.check import check
from axolotl_cli.commands.config import config
from axolotl_cli.commands.dev import dev
from axolotl_cli.commands.health import health
from axolotl_cli.commands.install import install, manifest
from axolotl_cli.commands.list import inspect, list_features
from axolotl_cli.commands.policy import policy
from axolotl_cli.commands.serve import serve
from axolotl_cli.exit import ExitCode, run_and_exit
from axolotl_cli.text import report_findings


class _Commands(TyperGroup):
    """Prints configuration errors one per line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not report_findings(error):
                raise
            raise typer.Exit(ExitCode.NOT_CONFIGURED) from None


app = typer.Typer(
    name="axolotl",
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        typer.echo(f"axolotl {version('axolotl-mcp')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            "-C",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Run in this directory: the target, the settings file and .env are looked up there.",
        ),
    ] = None,
) -> None:
    """Serve tools, prompts and resources over the Model Context Protocol, and try them on the command line."""
    if directory is not None:
        os.chdir(directory)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("serve")(serve)
app.command("dev")(dev)
app.command("list")(list_features)
app.command("call")(call)
app.command("prompt")(prompt)
app.command("read")(read)
app.command("inspect")(inspect)
app.command("check")(check)
app.command("health")(health)
app.command("install")(install)
app.add_typer(policy, name="policy")
app.add_typer(audit)
app.add_typer(auth)
app.add_typer(config)
app.add_typer(manifest)


def _escape_unencodable_output() -> None:
    """Escape characters that the encoding of stdout does not have, as Python does on stderr."""
    if isinstance(sys.stdout, TextIOWrapper):
        with suppress(OSError):  # of a stream that only looks seekable, such as some sockets
            sys.stdout.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command of this process."""
    _escape_unencodable_output()
    run_and_exit(app)
