"""`axolotl help`: the help of a command."""

from typing import Annotated, Any

import typer


def show_help(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command, for example call or policy explain.")
    ] = None,
) -> None:
    """Show the help of a command, or the list of all commands."""
    found: Any = context.find_root()
    for word in command or []:
        group = found.command
        inner = group.get_command(found, word) if hasattr(group, "get_command") else None
        if inner is None:
            hint = group.suggestion(word) if hasattr(group, "suggestion") else "axolotl help lists all commands."
            context.fail(f"No such command '{' '.join(command or [])}'. {hint}")
        found = type(found)(inner, info_name=word, parent=found)
    typer.echo(found.get_help())
