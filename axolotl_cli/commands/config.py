"""`axolotl config`: the effective settings, their origins, and the schema of the settings file."""

from typing import Annotated

import typer

from axolotl_cli.options import AsJson, FileOptions, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import warn
from axolotl_cli.views.setting_values import print_values, setting_as_dict, unknown_variables_of, values_of
from axolotl_server.settings.effective import effective_values
from axolotl_server.settings.file_schema import file_schema
from axolotl_server.settings.loading import load_with_origins
from axolotl_server.settings.origins import DEFAULT, file_name

config = typer.Typer(name="config", no_args_is_help=True, help="Show the effective settings and their schema.")


@config.command("show")
def show(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            envvar="AXOLOTL_TARGET",
            help="The container, as for serve. Without one, the target in the settings file, otherwise no container.",
        ),
    ] = None,
    *,
    toolset: ToolSets = None,
    files: FileOptions,
    origin: Annotated[bool, typer.Option("--origin", help="Show where each value comes from.")] = False,
    everything: Annotated[
        bool, typer.Option("--all/--changed", help="Show all values, or only those that are set.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show the effective value of every setting; secrets are masked."""
    chosen = resolve_target(target, toolset, files=files, is_required=False)
    if chosen.name:
        values = with_host(chosen, values_of)
    else:
        values = list(effective_values(load_with_origins(flags=chosen.flags, file=chosen.file)))
    shown = [value for value in values if everything or value.origin != DEFAULT]
    file, env_file = chosen.file, chosen.file.env_file
    facts = {
        "target": chosen.name or None,
        "file": None if file.path is None else file_name(file.path),
        **({} if file.profile is None else {"profile": file.profile}),
        "env_file": None if env_file is None else file_name(env_file.path),
    }
    if as_json:
        print_json({**facts, "settings": [setting_as_dict(value) for value in shown]})
    else:
        labeled = {name.replace("_", " "): fact or "–" for name, fact in facts.items()}
        print_values(labeled, shown, len(values), with_origin=origin)
    for text in unknown_variables_of(chosen):
        warn(text)


@config.command("schema")
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors and your own checks."""
    print_json(file_schema())
