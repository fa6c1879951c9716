"""`axolotl call`: one call through the real pipeline, without a wire."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axolotl_cli.codes import ExitCode
from axolotl_cli.options import AsJson, ToolSets

if TYPE_CHECKING:
    from axolotl_server.client import RemoteError
    from axolotl_server.host import ServerHost

__all__ = ["call"]


def call(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The container, as for serve; - for the default target.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the tool.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="key=value pairs, or a JSON object.")
    ] = None,
    toolset: ToolSets = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its answer.

    The exit code is 1 if the tool answers with an error, 3 if the server refuses the request.
    """
    from axolotl_cli.running import with_host
    from axolotl_cli.targets import choose
    from axolotl_server.client import RemoteError

    async def work(host: "ServerHost") -> Any:
        return await _call(host, name, arguments or [])

    try:
        result = with_host(choose(target, toolset), work)
    except RemoteError as error:
        _print_refusal(error, as_json)
        raise typer.Exit(ExitCode.REFUSED) from None
    _print_result(result, as_json)
    raise typer.Exit(ExitCode.TOOL_FAILED if result.get("isError") else ExitCode.DONE)


async def _call(host: "ServerHost", name: str, words: Sequence[str]) -> Any:
    from axolotl_cli.arguments import as_text, read_arguments
    from axolotl_server.client import InProcessClient

    params = {"name": as_text(name), "arguments": read_arguments(words, _schema_of(host, name))}
    client = InProcessClient(host.handler)
    try:
        return await client.request("tools/call", params, on_progress=_print_progress)
    finally:
        await client.close()


def _schema_of(host: "ServerHost", name: str) -> Mapping[str, Any]:
    from axolotl_core.errors import ProtocolError

    try:
        schema: Mapping[str, Any] = host.catalogue.by_name[name].spec.input_schema
        return schema
    except ProtocolError:
        return {}  # the call itself will be refused, in the server's own words


def _print_progress(params: Mapping[str, Any]) -> None:
    total = f"/{params['total']:g}" if "total" in params else ""
    message = f" {params['message']}" if "message" in params else ""
    typer.secho(f"… {params['progress']:g}{total}{message}", dim=True, err=True)


def _print_refusal(error: "RemoteError", as_json: bool) -> None:
    from axolotl_cli.failures import report
    from axolotl_cli.render import print_json

    if as_json:
        print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        report(f"{error.message} ({error.code})")


def _print_result(result: Mapping[str, Any], as_json: bool) -> None:
    from axolotl_cli.render import print_json

    if as_json:
        print_json(result)
    elif "structuredContent" in result and not result.get("isError"):
        print_json(result["structuredContent"])
    else:
        for block in result["content"]:
            typer.echo(_text_of(block), err=result.get("isError", False))


def _text_of(block: Mapping[str, Any]) -> str:
    """Show a block of content; what a terminal cannot show is named."""
    if block["type"] == "text":
        return str(block["text"])
    resource = block.get("resource", block)
    if "text" in resource:
        return str(resource["text"])
    kind, place = resource.get("mimeType", ""), resource.get("uri", "")
    return f"[{' '.join(part for part in (block['type'], kind, place) if part)}]"
