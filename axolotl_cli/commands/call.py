"""`axolotl call`, `axolotl prompt` and `axolotl read`: one request to a server."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

from axolotl_cli.calling.request import SchemaOf, Sender, as_text, read_arguments, read_texts
from axolotl_cli.exit import ExitCode
from axolotl_cli.options import (
    Answers,
    AsJson,
    FileOptions,
    FirstTarget,
    RemoteOptions,
    ToolSets,
)
from axolotl_cli.output import print_contents, print_json, print_text, text_of
from axolotl_cli.principal import ActingPrincipal
from axolotl_cli.text import one_line

Arguments: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
]


def call(
    context: typer.Context,
    target: FirstTarget = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The name of the tool.")] = None,
    arguments: Arguments = None,
    *,
    server: RemoteOptions,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    files: FileOptions,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its result.

    The exit code is 1 if the tool fails, 3 if the server refuses the request.
    """
    server.check(principal)
    sender = Sender(context, server, toolset, files, principal)
    name, *words = sender.split("NAME", target, name, *(arguments or []))

    async def prepare(schema_of: SchemaOf) -> dict[str, Any]:
        schema = await schema_of(as_text(name)) if words else {}
        return {"name": as_text(name), "arguments": read_arguments(words, schema)}

    result = sender.send("tools/call", prepare, answer or [], None if as_json else _print_result)
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


def prompt(
    context: typer.Context,
    target: FirstTarget = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The name of the prompt.")] = None,
    arguments: Arguments = None,
    *,
    server: RemoteOptions,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    files: FileOptions,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Render a prompt and print its messages.

    The exit code is 3 if the server refuses the request or the prompt fails.
    """
    server.check(principal)
    sender = Sender(context, server, toolset, files, principal)
    name, *words = sender.split("NAME", target, name, *(arguments or []))

    async def prepare(schema_of: SchemaOf) -> dict[str, Any]:
        return {"name": as_text(name), "arguments": read_texts(words)}

    sender.send("prompts/get", prepare, answer or [], None if as_json else _print_messages)


def read(
    context: typer.Context,
    target: FirstTarget = None,
    uri: Annotated[
        str | None, typer.Argument(metavar="URI", help="The URI of a resource, or one that matches a template.")
    ] = None,
    *,
    server: RemoteOptions,
    principal: ActingPrincipal = None,
    toolset: ToolSets = None,
    files: FileOptions,
    answer: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Read a resource and print its content.

    The exit code is 3 if there is no such resource or reading it fails.
    """
    server.check(principal)
    sender = Sender(context, server, toolset, files, principal)
    [uri] = sender.split("URI", target, uri)

    async def prepare(schema_of: SchemaOf) -> dict[str, Any]:
        return {"uri": as_text(uri)}

    sender.send("resources/read", prepare, answer or [], None if as_json else _print_contents)


def _print_result(result: Mapping[str, Any]) -> None:
    if "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            print_text(text_of(block), err=result.get("isError", False))


def _print_messages(result: Mapping[str, Any]) -> None:
    messages = result["messages"]
    for message in messages:
        if len(messages) > 1:
            typer.secho(f"[{one_line(message['role'])}]", bold=True)
        print_text(text_of(message["content"]))


def _print_contents(result: Mapping[str, Any]) -> None:
    print_contents(result["contents"])
