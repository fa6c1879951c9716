"""`axolotl health`: the readiness of a running server."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, EnvFile, FileOptions, Profile, SettingsFile
from axolotl_cli.text import one_line


def health(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The URL of the server, or of a health route. Defaults to the address in the settings."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for the response.")
    ] = 5.0,
    env_file: EnvFile = None,
    settings: SettingsFile = None,
    profile: Profile = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a running server is ready.

    The exit code is 0 if it is ready, 1 if it is not, 3 if it does not answer.
    """
    from axolotl_cli.serving.health_probe import Unreachable, ask_health, full_url, health_url

    try:
        address = health_url(FileOptions(env_file, settings, profile)) if url is None else full_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        answer = ask_health(address, timeout)
    except Unreachable as error:
        _print_unreachable(address, str(error), as_json)
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    if as_json:
        typer.echo(json.dumps({"ready": answer.is_ready, "url": address, **answer.content}, indent=2))
    else:
        typer.echo("\n".join(_lines(answer.is_ready, answer.content)))
    raise typer.Exit(ExitCode.DONE if answer.is_ready else ExitCode.NOT_READY)


def _print_unreachable(address: str, reason: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"ready": False, "url": address, "error": reason}, indent=2))
    else:
        typer.echo(f"Error: No health report from {address}: {one_line(reason)}", err=True)


def _lines(is_ready: bool, content: Mapping[str, Any]) -> Iterator[str]:
    """Format the answer, with a line for each check that is not ok."""
    status = content["status"]
    yield ("ready" if status == "ok" else f"ready, but {status}") if is_ready else "not ready"
    checks = content.get("checks")
    for name, check in checks.items() if isinstance(checks, dict) else ():
        if isinstance(check, dict) and check.get("status") != "ok":
            reason = f": {check['reason']}" if "reason" in check else ""
            yield one_line(f"  {name} {check.get('status')}{reason}")
