"""`axolotl call`: one call through the real pipeline, without a wire."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.codes import ExitCode
from axolotl_cli.options import Answers, AsJson, EnvFile, FirstTarget, ToolSets

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["call"]


def call(
    target: FirstTarget,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the tool.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
    ] = None,
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its answer.

    The exit code is 1 if the tool answers with an error, 3 if the server refuses the request.
    """
    from axolotl_cli.arguments import as_text, read_arguments
    from axolotl_cli.requesting import request
    from axolotl_cli.targets import choose

    choice = choose(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_arguments(arguments or [], _schema_of(host, name))}

    result = request(choice, "tools/call", prepare, answer or [], as_json=as_json)
    _print_result(result, as_json)
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


def _schema_of(host: "ServerHost", name: str) -> Mapping[str, Any]:
    from axolotl_core.errors import ProtocolError

    try:
        schema: Mapping[str, Any] = host.catalogue.by_name[name].spec.input_schema
        return schema
    except ProtocolError:
        return {}  # the call itself will be refused, in the server's own words


def _print_result(result: Mapping[str, Any], as_json: bool) -> None:
    from axolotl_cli.contents import text_of
    from axolotl_cli.render import print_json

    if as_json:
        print_json(result)
    elif "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            typer.echo(text_of(block), err=result.get("isError", False))
