"""A trial start of a server: errors, and possible improvements of what it serves."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from axolotl_cli.runtime import without_stored_tasks
from axolotl_cli.serving.start_findings import settings_without_effect, specs_of
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import counts_in
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.policies.tool_rules import retry_hazards
from axolotl_core.schema import resolve
from axolotl_server.access.verifiers import make_gate
from axolotl_server.calls.binding import Binding
from axolotl_server.extensions.tasks.engines.assembly import database_maker
from axolotl_server.extensions.tasks.extension import Tasks
from axolotl_server.extensions.tasks.task_runner import may_restart
from axolotl_server.host import ServerHost
from axolotl_server.hosting.role_mistakes import misspelled_roles
from axolotl_server.hosting.role_resolution import resolve_settings
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.settings.loading import load_settings

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_USUAL_NAME: Final = re.compile(r"[a-z0-9_.-]{1,40}")


class Severity(StrEnum):
    """Whether a finding keeps the server from starting."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or possible improvement."""

    severity: Severity
    message: str
    tool: str | None = None
    prompt: str | None = None
    resource: str | None = None
    """The URI of the resource, or its URI template."""


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
            settings, tasks = host.loaded_settings.settings, host.extension(Tasks)
            with collecting():  # what only some transports and the first task need; nothing is connected
                _ = host.assembly.sealer
                if settings.auth.is_used or host.roles.token_verifier is not None:
                    make_gate(settings.auth, host.roles.token_verifier)
                if settings.tasks.url is not None and (tasks is None or tasks.given is None):
                    database_maker(settings)
            own = await resolve_settings(container)
            for name in target.file.profiles:  # a start validates the selected one only
                with collecting():
                    load_settings(flags=target.flags, file=target.file.select(name), container=own)
    return Trial(sorted(dict.fromkeys(findings), key=lambda finding: finding.severity), counts)


def _advice(host: ServerHost) -> Iterator[Finding]:
    """Suggest improvements of features."""
    features, stores_tasks = host.bindings(), host.loaded_settings.settings.tasks.url is not None
    for tool in features["tools"]:
        name = tool.spec.name
        for problem in _problems_of_tool(tool, stores_tasks=stores_tasks):
            yield Finding(Severity.WARNING, f"Tool {name!r} {problem}", tool=name)
    for spec in (one.spec for one in features["prompts"]):
        schema = spec.feature.arguments_schema
        problems = [f"does not describe its argument {name!r}" for name in _undescribed(schema, schema)]
        if not spec.feature.description.strip():
            problems.insert(0, "has no description: users will not know what it is for")
        for problem in (*problems, *_problems_of_execution(spec)):
            yield Finding(Severity.WARNING, f"Prompt {spec.name!r} {problem}", prompt=spec.name)
    for spec in (one.spec for one in (*features["resources"], *features["templates"])):
        described = spec.feature.description.strip()
        problems = [] if described else ["has no description: clients will not know what it contains"]
        for problem in (*problems, *_problems_of_execution(spec)):
            yield Finding(Severity.WARNING, f"Resource {spec.name!r} {problem}", resource=spec.name)
    uris: dict[str, str] = {}
    for skill in (one.spec.feature for one in features.get("skills", ())):
        problems = []
        if skill.name in uris:
            problems.append(f"has the same name as {uris[skill.name]!r}: hosts show both as {skill.name!r}")
        if "allowed-tools" in skill.entry["frontmatter"]:
            problems.append("has allowed-tools, which hosts ignore in skills of a server")
        uris.setdefault(skill.name, skill.uri)
        for problem in problems:
            yield Finding(Severity.WARNING, f"Skill {skill.uri!r} {problem}", resource=skill.uri)


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


def _problems_of_tool(binding: Binding[ToolSpec], *, stores_tasks: bool) -> Iterator[str]:
    spec, tool = binding.spec, binding.spec.tool
    if not _SAFE_NAME.fullmatch(spec.name):
        yield "has a name that some clients refuse: use 1 to 64 of these characters: A-Z a-z 0-9 _ . -"
    elif not _USUAL_NAME.fullmatch(spec.name):
        yield "has a name that models easily get wrong: use at most 40 lower-case characters, such as 'get_order'"
    if not spec.tool.description.strip():
        yield "has no description: a model will not know when to call it"
    for argument in _undescribed(spec.input_schema, spec.input_schema):
        yield f"does not describe its argument {argument!r}"
    if _has_bytes(spec.output_schema):
        yield (
            "returns bytes, which are sent as text, so a call fails if they are not UTF-8: set "
            'ser_json_bytes="base64" in the model_config of their model, or return a content block'
        )
    yield from retry_hazards(tool, spec.limits.execution)
    yield from _problems_of_execution(spec)
    waits = any(isinstance(layer, ApprovalLayer) for layer in binding.layers)
    # Whether the code of a tool asks, too, cannot be known without running it.
    if stores_tasks and waits and tool.task_support != "forbidden" and not may_restart(tool):
        yield (
            "occupies a slot of a worker while its task waits for approval, because it may not run again: set "
            'task_restart to "resume" if it can'
        )


def _problems_of_execution(spec: FeatureSpec) -> Iterator[str]:
    if spec.limits.execution == "loop" and not spec.feature.suspends:
        yield "is a plain function on the event loop: it blocks all other calls while it runs"


def _has_bytes(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return schema.get("format") == "binary" or any(map(_has_bytes, schema.values()))
    return isinstance(schema, list) and any(map(_has_bytes, schema))


def _undescribed(
    schema: Any, root: Mapping[str, Any], path: str = "", seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Find arguments without a description, including those inside other arguments."""
    if not isinstance(schema, Mapping) or schema.get("$ref") in seen:
        return
    here, seen = resolve(schema, root), seen | {schema.get("$ref", "")}
    for name, argument in here.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        if not resolve(argument, root).get("description"):
            yield place
        yield from _undescribed(argument, root, place, seen)
    for part in (*here.get("anyOf", ()), *here.get("oneOf", ()), *here.get("allOf", ())):
        yield from _undescribed(part, root, path, seen)
    yield from _undescribed(here.get("items"), root, f"{path}[]", seen)
