"""`axolotl config`: what the settings are, where they come from, and what a file may say."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.options import AsJson, EnvFile, ToolSets

if TYPE_CHECKING:
    from axolotl_cli.target import ChosenTarget
    from axolotl_server.configuration.effective import EffectiveValue
    from axolotl_server.host import ServerHost

config = typer.Typer(name="config", no_args_is_help=True, help="See which settings hold, and what a file may say.")


@config.command("show")
def show(
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            envvar="AXOLOTL_TARGET",
            help="The container, as for serve; none for the settings file's target, else no container is asked.",
        ),
    ] = None,
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say of each value where it came from.")] = False,
    everything: Annotated[bool, typer.Option("--all/--changed", help="Show all values, or those somebody set.")] = True,
    as_json: AsJson = False,
) -> None:
    """Show every value that holds after all sources were weighed; secrets are masked."""
    from axolotl_cli.target import resolve_target
    from axolotl_cli.views.setting_values import stray_variables
    from axolotl_server.configuration.origins import DEFAULT

    choice = resolve_target(target, toolset, env_file=env_file)
    values = _values(choice)
    shown = [value for value in values if everything or value.origin != DEFAULT]
    facts = _facts(choice)
    if as_json:
        from axolotl_cli.output import print_json
        from axolotl_cli.views.setting_values import written

        print_json({**facts, "settings": [written(value) for value in shown]})
    else:
        from axolotl_cli.views.setting_values import print_values

        words = {name.replace("_", " "): fact or "–" for name, fact in facts.items()}
        print_values(words, shown, len(values), with_origin=origin)
    for text in stray_variables(context, choice):
        typer.echo(f"{typer.style('Warning:', fg='yellow', bold=True)} {text}", err=True)


@config.command("schema")
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors and for checks of your own."""
    from axolotl_cli.output import print_json
    from axolotl_server.configuration.file_schema import file_schema

    print_json(file_schema())


def _values(choice: "ChosenTarget") -> "list[EffectiveValue]":
    if not choice.is_named:
        from axolotl_server.configuration.effective import effective_values
        from axolotl_server.configuration.loading import load_with_origins

        return list(effective_values(load_with_origins(flags=choice.flags, file=choice.file)))
    from axolotl_cli.runtime import with_host

    async def work(host: "ServerHost") -> "list[EffectiveValue]":
        from axolotl_cli.views.setting_values import values_of

        return values_of(host)

    return with_host(choice, work)


def _facts(choice: "ChosenTarget") -> dict[str, Any]:
    from axolotl_server.configuration.origins import file_name

    file, env_file = choice.file, choice.file.env_file
    return {
        "target": choice.target if choice.is_named else None,
        "file": None if file.path is None else file_name(file.path),
        "env_file": None if env_file is None else file_name(env_file.path),
    }
