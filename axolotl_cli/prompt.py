"""`axolotl prompt`: the messages that a prompt makes of its arguments."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.options import Answers, AsJson, EnvFile, FirstTarget, ToolSets

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["prompt"]


def prompt(
    target: FirstTarget,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the prompt.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
    ] = None,
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Render a prompt and print its messages.

    The exit code is 3 if the server refuses the request, or the prompt fails.
    """
    from axolotl_cli.arguments import as_text, read_texts
    from axolotl_cli.requesting import request
    from axolotl_cli.targets import choose

    choice = choose(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_texts(arguments or [])}

    _print_result(request(choice, "prompts/get", prepare, answer or [], as_json=as_json), as_json)


def _print_result(result: Mapping[str, Any], as_json: bool) -> None:
    from axolotl_cli.contents import text_of
    from axolotl_cli.render import print_json

    if as_json:
        print_json(result)
        return
    messages = result["messages"]
    for message in messages:
        if len(messages) > 1:
            typer.secho(f"[{message['role']}]", bold=True)
        typer.echo(text_of(message["content"]))
