"""The Typer application and its commands."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import with_groups
from axolotl_cli.text import report_findings

_SUMMARIES: Final = {
    "new": "Create a project: tools, settings with profiles and access rules, tests, a Dockerfile and a CI file.",
    "serve": "Serve the tools, prompts and resources of a container.",
    "dev": "Serve on this machine with hot reload, a line for each call, and a console at /console.",
    "worker": "Run the stored tasks of a container until a signal stops it.",
    "tasks": "Prepare the store of tasks; list, show and cancel tasks.",
    "list": "List the tools, prompts, resources and skills of a container or a running server.",
    "call": "Call a tool and print its result.",
    "prompt": "Render a prompt and print its messages.",
    "read": "Read a resource and print its content.",
    "inspect": "Show a server in full: identity, settings, and all features with schemas, layers and limits.",
    "check": "Start and stop the server, and report errors or possible improvements.",
    "contract": "Freeze what callers rely on, and find changes that break them.",
    "budget": "Show what the tools cost a model: bytes and tokens of names, descriptions and input schemas.",
    "health": "Check whether a running server is ready.",
    "install": "Add a server to the configuration of an MCP client; by default, only print the entry.",
    "policy": "Explain authorization decisions.",
    "audit": "Verify the audit log.",
    "auth": "Create API keys for clients, and find out why tokens are refused.",
    "config": "Show the effective settings and their schema.",
}
"""All commands, in the order of the help, with the first line of their own help: so that imports none of them."""

_PLACES: Final = {"list": "list:list_features", "prompt": "call:prompt", "read": "call:read", "inspect": "list:inspect"}
"""The modules and functions of commands whose names are not those of a module and its function, or group."""


class _WithoutTypes:
    """Leaves out the type of flags in the help: a flag has no value."""

    def get_params(self, ctx: Any) -> Any:
        params: Any = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_WithoutTypes, TyperCommand):
    """One command."""


class _Group(_WithoutTypes, TyperGroup):
    """Suggests what to write instead of an unknown command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word, commands = args[0], self.commands
        if ctx.resilient_parsing or word.startswith("-") or self.get_command(ctx, word) is not None:
            return super().resolve_command(ctx, args)
        from axolotl_core.names import nearest

        # Name the nearest command, or one in a group, such as `policy explain` for `explain`.
        inner = {f"{name} {one}": one for name in commands for one in getattr(commands[name], "commands", ())}
        for close in (word if word in inner.values() else None, nearest(word, commands), nearest(word, inner.values())):
            if close is not None:
                near = [close] if close in commands else [path for path, one in inner.items() if one == close]
                ctx.fail(f"No such command '{word}'. Did you mean {' or '.join(map(repr, near))}?")
        listed = "axolotl -h lists all commands" if inner else f"The commands are {', '.join(commands)}"
        return ctx.fail(f"No such command '{word}'. {listed}.")


@cache
def _command(name: str) -> Any:
    """Import and build a command."""
    if name not in _SUMMARIES:
        raise KeyError(name)
    module, _, attribute = _PLACES.get(name, f"{name}:{name}").partition(":")
    found = getattr(import_module(f"axolotl_cli.commands.{module}"), attribute)
    if isinstance(found, typer.Typer):
        found.info.cls = _Group
        for command in found.registered_commands:
            command.cls = _Command
            callback: Any = command.callback
            command.callback = with_groups(callback)
        return get_group(found)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=_Command)(with_groups(found))
    return get_command(single)


class _CommandTable(Mapping[str, Any]):
    """All commands by name. A command is imported and built when it is first looked up."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_SUMMARIES)

    def __len__(self) -> int:
        return len(_SUMMARIES)


class _Commands(_Group):
    """Builds only the command that is run, and prints configuration errors one per line, without a traceback."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _CommandTable()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._summarized():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        with self._summarized():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _summarized(self) -> Iterator[None]:
        """Have commands without their modules, to list them."""
        table = self.commands
        self.commands = {name: TyperCommand(name, help=text) for name, text in _SUMMARIES.items()}
        try:
            yield
        finally:
            self.commands = table

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except Exception as error:
            if not report_findings(error):
                raise
            raise typer.Exit(ExitCode.NOT_CONFIGURED) from None


app = typer.Typer(
    name="axolotl",
    cls=_Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"axolotl {metadata.version('axolotl-mcp')}")
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
