"""`axolotl call`, `axolotl prompt` and `axolotl read`: one request to a server."""

from typing import Annotated, TypeAlias

import typer

from axolotl_cli.calling.request import RequestOptions, Sender, as_text, read_texts
from axolotl_cli.exit import ExitCode
from axolotl_cli.options import FirstTarget
from axolotl_cli.output import print_contents, print_messages, print_result

Arguments: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
]


def call(
    context: typer.Context,
    target: FirstTarget = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The name of the tool.")] = None,
    arguments: Arguments = None,
    *,
    options: RequestOptions,
) -> None:
    """Call a tool and print its result.

    The exit code is 1 if the tool fails, 3 if the server refuses the request.
    """
    sender = Sender(context, options)
    name, *words = sender.split("NAME", target, name, *(arguments or []))
    params = {"name": as_text(name), "arguments": {}}
    result = sender.send("tools/call", params, print_result, words)
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


def prompt(
    context: typer.Context,
    target: FirstTarget = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The name of the prompt.")] = None,
    arguments: Arguments = None,
    *,
    options: RequestOptions,
) -> None:
    """Render a prompt and print its messages.

    The exit code is 3 if the server refuses the request or the prompt fails.
    """
    sender = Sender(context, options)
    name, *words = sender.split("NAME", target, name, *(arguments or []))
    params = {"name": as_text(name), "arguments": read_texts(words)}
    sender.send("prompts/get", params, print_messages)


def read(
    context: typer.Context,
    target: FirstTarget = None,
    uri: Annotated[
        str | None, typer.Argument(metavar="URI", help="The URI of a resource, or one that matches a template.")
    ] = None,
    *,
    options: RequestOptions,
) -> None:
    """Read a resource and print its content.

    The exit code is 3 if there is no such resource or reading it fails.
    """
    sender = Sender(context, options)
    [uri] = sender.split("URI", target, uri)
    sender.send("resources/read", {"uri": as_text(uri)}, print_contents)
