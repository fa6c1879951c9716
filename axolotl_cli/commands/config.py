"""`axolotl config`: the effective settings, their origins, and the schema of the settings file."""

from typing import Annotated, Any

import typer

from axolotl_cli.options import AsJson, FileOptions, ToolSets
from axolotl_cli.output import print_json
from axolotl_cli.runtime import with_host
from axolotl_cli.target import ChosenTarget, resolve_target
from axolotl_cli.text import warn
from axolotl_cli.views.setting_values import print_values, setting_as_dict, unknown_variables_of, values_of
from axolotl_server.settings.effective import EffectiveValue, effective_values
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
    values = _values(chosen)
    shown = [value for value in values if everything or value.origin != DEFAULT]
    facts = _facts(chosen)
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


def _values(target: ChosenTarget) -> list[EffectiveValue]:
    if not target.name:
        return list(effective_values(load_with_origins(flags=target.flags, file=target.file)))
    return with_host(target, values_of)


def _facts(target: ChosenTarget) -> dict[str, Any]:
    file, env_file = target.file, target.file.env_file
    return {
        "target": target.name or None,
        "file": None if file.path is None else file_name(file.path),
        **({} if file.profile is None else {"profile": file.profile}),
        "env_file": None if env_file is None else file_name(env_file.path),
    }
