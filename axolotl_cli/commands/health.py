"""`axolotl health`: the readiness of a running server."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions, RemoteOptions
from axolotl_cli.text import one_line


def health(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The URL of the server, of its MCP endpoint, or of a health route. Defaults to the address in the "
            "settings.",
        ),
    ] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="The environment variable with the token.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long the whole check may take.")
    ] = 5.0,
    files: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Check whether a running server is ready.

    A server without health routes is ready if it answers over MCP.

    The exit code is 0 if it is ready, 1 if it is not, 3 if it does not answer.
    """
    from axolotl_cli.serving.health_probe import NoHealthRoute, Unreachable, ask_health, full_url, health_url

    try:
        address = health_url(files) if url is None else full_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    deadline = monotonic() + timeout
    try:
        answer = ask_health(address, timeout)
    except Unreachable as error:
        if isinstance(error, NoHealthRoute) and url is not None:
            with suppress(typer.Exit):
                return _ask_over_mcp(RemoteOptions(url, token_env), deadline - monotonic(), as_json)
        _print_unreachable(address, str(error), as_json)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    if as_json:
        typer.echo(json.dumps({"ready": answer.is_ready, "url": address, **answer.content}, indent=2))
    else:
        typer.echo("\n".join(_lines(answer.is_ready, answer.content)))
    raise typer.Exit(ExitCode.DONE if answer.is_ready else ExitCode.NOT_READY)


def _ask_over_mcp(remote: RemoteOptions, seconds: float, as_json: bool) -> None:
    """Check whether a server without health routes answers at its MCP endpoint."""
    from axolotl_cli.calling.running_server import RunningServer

    server = RunningServer.of(remote)
    if urlsplit(server.url).path == "/":
        server = server._replace(url=server.url.removesuffix("/"))
    found = server.use(lambda client: client.describe(), within_seconds=seconds)
    if as_json:
        about = {"name": found.name, "version": found.version, "revision": found.revision}
        typer.echo(json.dumps({"ready": True, "url": server.url, "status": "ok", "server": about}, indent=2))
    else:
        name = f"{found.name} {found.version}".rstrip()
        typer.echo(one_line(f"ready: {name} answers in revision {found.revision}, but has no health routes"))


def _print_unreachable(address: str, reason: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"ready": False, "url": address, "error": reason}, indent=2))
    else:
        typer.echo(f"Error: No health report from {address}: {one_line(reason)}", err=True)


def _lines(is_ready: bool, content: Mapping[str, Any]) -> Iterator[str]:
    """Format the answer, with a line for each check that is not ok."""
    status = content["status"]
    yield one_line("ready" if status == "ok" else f"ready, but {status}") if is_ready else "not ready"
    checks = content.get("checks")
    for name, check in checks.items() if isinstance(checks, dict) else ():
        if isinstance(check, dict) and check.get("status") != "ok":
            reason = f": {check['reason']}" if "reason" in check else ""
            yield one_line(f"  {name} {check.get('status')}{reason}")
