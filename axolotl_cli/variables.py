"""Variables that the commands themselves read, and those that nobody reads."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from axolotl_cli.targets import Choice

__all__ = ["stray_variables"]


def stray_variables(context: typer.Context, choice: "Choice") -> list[str]:
    """Find variables that look like ours and say nothing, in the environment and in the file of variables."""
    from axolotl_server.configuration.environment import unknown_variables

    file = choice.file.env_file
    known = set(_variables_of(context.find_root().command))
    stray = list(unknown_variables(os.environ, known))
    for name in () if file is None else file.variables:
        stray += [f"{text} ({file.locate(name)})" for text in unknown_variables([name], known) if file is not None]
    return stray


def _variables_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        names = parameter.envvar or ()
        yield from [names] if isinstance(names, str) else names
    for inner in getattr(command, "commands", {}).values():
        yield from _variables_of(inner)
