"""`axolotl auth`: API keys for clients, and a diagnosis of tokens and issuers."""

import os
import re
import secrets
from functools import partial
from typing import Annotated

import typer

from axolotl_cli.checking.auth_diagnosis import AuthDiagnosis, AuthFinding
from axolotl_cli.exit import ExitCode
from axolotl_cli.options import AsJson, FileOptions, Target
from axolotl_cli.output import print_json
from axolotl_cli.runtime import with_host
from axolotl_cli.target import resolve_target
from axolotl_cli.text import counted, one_line
from axolotl_cli.views.offer import counts, describe_for
from axolotl_core.protocol.identity import Principal
from axolotl_server.access.api_keys import hash_key as digest_of
from axolotl_server.access.fetcher import HttpFetcher
from axolotl_server.host import ServerHost

_BYTES = 32
_MAX_LINES = 20

auth = typer.Typer(
    name="auth", no_args_is_help=True, help="Create API keys for clients, and find out why tokens are refused."
)


@auth.command("hash-key")
def hash_key(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The name of the key in the settings, which is also the subject of its client."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Create a random API key, and the setting with its hash for the server.

    The key is shown once and stored nowhere. The client sends it in the header Authorization: Bearer.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is None:
        raise typer.BadParameter("use letters, digits, - and _, at most 64 of them", param_hint="NAME")
    key = f"axk_{secrets.token_urlsafe(_BYTES)}"
    if as_json:
        print_json({"name": name, "key": key, "hash": digest_of(key)})
        return
    typer.echo(f"For the client (shown only once):\n\n  {key}\n")
    typer.echo(f'For axolotl.toml:\n\n  [auth.api_keys.{name}]\n  hash = "{digest_of(key)}"')


@auth.command("doctor")
def doctor(
    target: Target = None,
    *,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The URL that clients use.")] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="VAR", help="An environment variable with a token.")
    ] = None,
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Explain every problem, not only the first.")
    ] = False,
    files: FileOptions,
) -> None:
    """Check settings, issuers, keys, a token, a running server and the policy, and explain the first problem.

    The exit code is 1 for a problem, 2 for invalid settings, 3 if an issuer or server does not answer.
    """
    token = None if token_env is None else (os.environ.get(token_env) or "").strip()
    if token == "":
        raise typer.BadParameter(f"the variable {token_env} is not set", param_hint="--token-env")
    chosen = resolve_target(target, None, files=files)
    findings = with_host(chosen, partial(_diagnose, url, token), is_audited=False)
    if as_json:
        shown = [
            {"check": one.check, "state": one.state, "text": one.text, "setting": place} for one, place in findings
        ]
        print_json({"findings": shown})
    else:
        for finding, _ in findings[: None if verbose else _MAX_LINES]:
            text = finding.text if finding.state != "problem" else "see below"
            typer.echo(one_line(f"{finding.state:<8} {finding.check}: {text}"))
        problems = [(finding, place) for finding, place in findings if finding.state == "problem"]
        for finding, place in problems if verbose else problems[:1]:
            typer.echo(one_line(f"{finding.check}: {finding.text}"))
            if place:
                typer.echo(f"setting: {place}")
    problem = next((finding for finding, _ in findings if finding.state == "problem"), None)
    raise typer.Exit(ExitCode.DONE if problem is None else problem.code)


async def _diagnose(url: str | None, token: str | None, host: ServerHost) -> list[tuple[AuthFinding, str]]:
    """Run the checks; return each finding with the place of its setting."""

    async def offer(principal: Principal) -> str:
        seen = ", ".join(counted(counts(await describe_for(principal, host))))
        authorization = host.assembly.tools.authorization
        if authorization is None:
            return f"sees {seen}: authorization is off"
        specs = [binding.spec for binding in host.assembly.tools.bindings()]
        rules = dict.fromkeys([(await authorization.decide(principal, spec)).rule for spec in specs])
        return f"sees {seen}; its tools are decided by: {', '.join(rules) or 'nothing'}"

    auth_settings = host.settings.auth
    fetcher = HttpFetcher(auth_settings.timeout_seconds)
    diagnosis = AuthDiagnosis(auth_settings, fetcher, url=url, token=token, offer=offer)
    try:
        findings = [finding async for finding in diagnosis.findings()]
    finally:
        await fetcher.close()
    described = []
    for finding in findings:
        keys = () if finding.setting is None else tuple(finding.setting.split("."))
        keys = ("auth", *keys) if len(keys) == 1 else keys
        place = f"{'.'.join(keys)} ({host.loaded_settings.origin_of(keys)})" if keys else ""
        described.append((finding, place))
    return described
