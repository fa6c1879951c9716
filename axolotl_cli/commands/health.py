"""`axolotl health`: ask a running server whether it may be sent calls."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, EnvFile
from axolotl_cli.text import one_line


def health(
    *,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The server, or the route to ask; else the address in the settings."),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long the answer may take.")] = 5.0,
    env_file: EnvFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask a running server whether it is ready: 0 says yes, 1 no, and 3 that there was no answer."""
    from axolotl_cli.serving.health_probe import Unreachable, ask_health, full_url

    try:
        address = _address(env_file) if url is None else full_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        answer = ask_health(address, timeout)
    except Unreachable as error:
        _print_silence(address, str(error), as_json)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    if as_json:
        typer.echo(json.dumps({"ready": answer.is_ready, "url": address, **answer.content}, indent=2))
    else:
        typer.echo("\n".join(_lines(answer.is_ready, answer.content)))
    raise typer.Exit(ExitCode.DONE if answer.is_ready else ExitCode.NOT_READY)


def _address(env_file: Path | None) -> str:
    from axolotl_cli.serving.health_probe import health_url  # which has to load all settings

    return health_url(env_file)


def _print_silence(address: str, reason: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"ready": False, "url": address, "error": reason}, indent=2))
    else:
        typer.echo(f"Error: {address} cannot be asked: {one_line(reason)}", err=True)


def _lines(is_ready: bool, content: Mapping[str, Any]) -> Iterator[str]:
    """Write the answer, and a line for each check that is not well."""
    status = content["status"]
    yield ("ready" if status == "ok" else f"ready, but {status}") if is_ready else "not ready"
    checks = content.get("checks")
    for name, found in checks.items() if isinstance(checks, dict) else ():
        if isinstance(found, dict) and found.get("status") != "ok":
            reason = f": {found['reason']}" if "reason" in found else ""
            yield one_line(f"  {name} {found.get('status')}{reason}")
