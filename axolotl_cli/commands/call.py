"""`axolotl read`: what is behind a URI."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import Answers, AsJson, EnvFile, FirstTarget, ToolSets

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost


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
    from axolotl_cli.calling.request import as_text, read_arguments, request
    from axolotl_cli.target import resolve_target

    choice = resolve_target(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_arguments(arguments or [], _schema_of(host, name))}

    result = request(choice, "tools/call", prepare, answer or [], as_json=as_json)
    _print_result(result, as_json)
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


def _schema_of(host: "ServerHost", name: str) -> Mapping[str, Any]:
    binding = host.catalogue.find(name)
    return {} if binding is None else binding.spec.input_schema  # the server refuses a call of an unknown tool


def _print_result(result: Mapping[str, Any], as_json: bool) -> None:
    from axolotl_cli.output import print_json, text_of

    if as_json:
        print_json(result)
    elif "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            typer.echo(text_of(block), err=result.get("isError", False))


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
    from axolotl_cli.calling.request import as_text, read_texts, request
    from axolotl_cli.target import resolve_target

    choice = resolve_target(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_texts(arguments or [])}

    _print_messages(request(choice, "prompts/get", prepare, answer or [], as_json=as_json), as_json)


def _print_messages(result: Mapping[str, Any], as_json: bool) -> None:
    from axolotl_cli.output import print_json, text_of

    if as_json:
        print_json(result)
        return
    messages = result["messages"]
    for message in messages:
        if len(messages) > 1:
            typer.secho(f"[{message['role']}]", bold=True)
        typer.echo(text_of(message["content"]))


def read(
    target: FirstTarget,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The URI of a resource, or one that a template makes.")],
    *,
    toolset: ToolSets = None,
    env_file: EnvFile = None,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Read a resource and print its content.

    The exit code is 3 if there is no such resource, or reading it fails.
    """
    from axolotl_cli.calling.request import as_text, request
    from axolotl_cli.output import print_contents, print_json
    from axolotl_cli.target import resolve_target

    choice = resolve_target(target, toolset, env_file=env_file)

    def prepare(host: "ServerHost") -> dict[str, Any]:
        return {"uri": as_text(uri)}

    result = request(choice, "resources/read", prepare, answer or [], as_json=as_json)
    if as_json:
        print_json(result)
    else:
        print_contents(result["contents"])
