"""A trial start of a server, and possible improvements of what it serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from axolotl_cli.checking.findings import (
    Finding,
    Severity,
    advice_about_prompt,
    advice_about_resource,
    advice_about_skills,
    advice_about_stored_tasks,
    advice_about_tool,
)
from axolotl_cli.runtime import without_stored_tasks
from axolotl_cli.serving.start_findings import settings_without_effect, specs_of
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import counts_in
from axolotl_core.errors import ConfigurationError
from axolotl_server.access.verifiers import make_gate
from axolotl_server.extensions.tasks.engines.assembly import database_maker
from axolotl_server.host import ServerHost
from axolotl_server.hosting.role_mistakes import misspelled_roles
from axolotl_server.hosting.role_resolution import resolve_settings
from axolotl_server.settings.loading import load_settings


class Trial(NamedTuple):
    """What a trial start has found."""

    findings: list[Finding]
    """All findings without duplicates, errors first."""
    counts: dict[str, int]
    """The number of features of each kind; empty if the server does not start."""


async def try_to_start(target: ChosenTarget) -> Trial:
    """Start a server without its audit log and its store of tasks, stop it, and find what could be better about it."""
    findings: list[Finding] = []
    counts: dict[str, int] = {}

    @contextmanager
    def collecting() -> Iterator[None]:
        try:
            yield
        except ConfigurationError as error:
            findings.extend(Finding(Severity.ERROR, message) for message in error.findings)
        except Exception as error:  # of the user's code
            findings.append(Finding(Severity.ERROR, f"The start failed: {type(error).__name__}: {error}"))

    with collecting():
        container = target.load_container()
        host = target.load(without_stored_tasks, is_audited=False, container=container)
        async with host:
            counts = counts_in(host)
            findings += [*_advice(host), *await _findings_in_settings(host)]
            findings += (Finding(Severity.WARNING, mistake) for mistake in misspelled_roles(container))
            with collecting():
                _make_what_starts_later(host)
            own = await resolve_settings(container)
            for name in target.file.profiles:  # a start validates the selected one only
                with collecting():
                    load_settings(flags=target.flags, file=target.file.select(name), container=own)
    return Trial(sorted(dict.fromkeys(findings), key=lambda finding: finding.severity), counts)


def _make_what_starts_later(host: ServerHost) -> None:
    """Make what only some transports and the first task need; nothing is connected."""
    settings = host.loaded_settings.settings
    _ = host.assembly.sealer
    if settings.auth.is_used or host.roles.token_verifier is not None:
        make_gate(settings.auth, host.roles.token_verifier)
    if settings.tasks.url is not None and host.roles.task_engine is None:
        database_maker(settings)


def _advice(host: ServerHost) -> Iterator[Finding]:
    features = host.bindings()
    for tool in features["tools"]:
        yield from advice_about_tool(tool.spec)
        if host.loaded_settings.settings.tasks.url is not None:
            yield from advice_about_stored_tasks(tool)
    for prompt in features["prompts"]:
        yield from advice_about_prompt(prompt.spec)
    for resource in (*features["resources"], *features["templates"]):
        yield from advice_about_resource(resource.spec)
    yield from advice_about_skills(host.roles.skills)


async def _findings_in_settings(host: ServerHost) -> list[Finding]:
    """Find settings without an effect, and a policy that leaves nothing to clients that have no token."""
    findings = [Finding(Severity.WARNING, problem, tool=tool) for tool, problem in settings_without_effect(host)]
    settings, authorization, specs = host.settings, host.assembly.authorization, specs_of(host)
    needs_token = settings.auth.is_used or host.roles.token_verifier is not None
    caller = settings.stdio.caller
    if authorization is None or needs_token or not specs or any(await authorization.allowed(caller, specs)):
        return findings
    problem = (
        f"The policy leaves clients over stdio with nothing: no rule allows {caller.subject} any feature; set "
        "stdio.principal, or allow features for anonymous clients"
    )
    return [*findings, Finding(Severity.WARNING, problem)]
