"""A trial start of a server, which goes on after errors so that all of them are found."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dependency_injector import containers

from axolotl_cli.checking.findings import (
    Finding,
    Severity,
    advice_about_prompt,
    advice_about_resource,
    advice_about_skills,
    advice_about_stored_tasks,
    advice_about_tool,
    missing_pages,
    unknown_tools,
)
from axolotl_cli.serving.start_findings import useless_rules
from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError
from axolotl_core.extension import check_extension
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer
from axolotl_core.prompts import check_prompt
from axolotl_core.registry import AnyPrompt, AnyResource, AnyTool
from axolotl_core.resources.resource import IResource, IResourceTemplate, check_resource
from axolotl_core.tools.tool import check_definition
from axolotl_server.configuration.loading import LoadedSettings, load_settings, load_with_origins
from axolotl_server.configuration.origins import CombinedValues
from axolotl_server.hosting.assembly import ServerAssembly
from axolotl_server.hosting.container_loading import load_container, start_resources
from axolotl_server.hosting.role_mistakes import misspelled_roles
from axolotl_server.hosting.role_resolution import faults_of, make_roles, resolve_settings
from axolotl_server.hosting.roles import Roles
from axolotl_server.methods.extensions import ExtensionMethods
from axolotl_server.settings.server import ServerSettings

FeatureT = TypeVar("FeatureT")


class TrialStart:
    """Collects all findings about a target."""

    def __init__(self, target: ChosenTarget) -> None:
        self._target = target
        self._findings: list[Finding] = []
        self.tools: tuple[AnyTool, ...] = ()
        self.prompts: tuple[AnyPrompt, ...] = ()
        self.resources: tuple[AnyResource, ...] = ()
        self._skills = 0

    @property
    def findings(self) -> list[Finding]:
        """All findings without duplicates, errors first."""
        return sorted(dict.fromkeys(self._findings), key=lambda finding: finding.severity)

    @property
    def counts(self) -> dict[str, int]:
        """The number of valid features of each kind."""
        own = [resource for resource in self.resources if resource._kind == "resource"]
        fixed = sum(isinstance(resource, IResource) for resource in own)
        return {
            "tool": len(self.tools),
            "prompt": len(self.prompts),
            "resource": fixed,
            "template": len(own) - fixed,
            "skill": self._skills,
        }

    async def run(self) -> None:
        """Take every step of a start, then look for possible improvements."""
        with self._collecting("The target failed to load"):
            container = load_container(self._target.name)
            with self._collecting("A resource of the container failed to start"):
                await start_resources(container)
            await self._examine(container)
            with self._collecting("A resource of the container failed to stop"):
                await _finish(container.shutdown_resources())

    async def _examine(self, container: containers.Container) -> None:
        loaded = await self._settings(container)
        roles = await self._roles(container)
        self._findings += map(_error, faults_of(roles))
        errors = {finding.message for finding in self._findings}
        mistakes = (mistake for mistake in misspelled_roles(container) if mistake not in errors)
        self._findings += (Finding(Severity.WARNING, mistake) for mistake in mistakes)
        self.tools = _valid(roles.tools, check_definition)
        self.prompts = _valid(roles.prompts, check_prompt)
        self.resources = _valid(roles.resources, check_resource)
        await self._compile(roles, loaded)
        self._skills = len(roles.skills)
        self._findings += advice_about_skills(roles.skills)
        uris = {resource.uri for resource in self.resources if isinstance(resource, IResource)}
        self._findings += missing_pages(self.tools, uris)
        self._findings += unknown_tools(loaded, [tool.name for tool in self.tools])

    async def _settings(self, container: containers.Container) -> LoadedSettings:
        of_container: Any = {}
        with self._collecting("The role settings failed"):
            of_container = await resolve_settings(container)
        with self._collecting("The settings failed to load"):
            loaded = load_with_origins(flags=self._target.flags, file=self._target.file, container=of_container)
            self._check_profiles(of_container)
            return loaded
        return LoadedSettings(ServerSettings.model_construct(), CombinedValues())

    def _check_profiles(self, of_container: Any) -> None:
        """Load the settings with each profile, because a start validates the selected one only."""
        file = self._target.file
        for name in file.profiles:
            with self._collecting(f"The profile {name!r} failed to load"):
                load_settings(flags=self._target.flags, file=file.select(name), container=of_container)

    async def _roles(self, container: containers.Container) -> Roles:
        """Make the features of the selected tool sets; if the selection is invalid, all of them."""
        for toolsets in (self._target.toolsets, ()):
            with self._collecting("A role of the container failed"):
                return await make_roles(container, toolsets)
        return Roles()

    async def _compile(self, roles: Roles, loaded: LoadedSettings) -> None:
        settings = loaded.settings
        candidates: tuple[Any, ...] = roles.layers
        layers = tuple(layer for layer in candidates if isinstance(layer, ILayer))
        kept = Roles(
            layers=layers,
            authorizer=roles.authorizer,
            token_verifier=roles.token_verifier,
            quota_store=roles.quota_store,
            result_store=roles.result_store,
        )
        assembly = ServerAssembly(settings, kept)
        assembly.toolsets = roles.set_names
        specs = [
            *self._compiled_tools(assembly, settings),
            *self._compiled_prompts(assembly),
            *self._compiled_resources(assembly),
        ]
        with self._collecting("The extensions failed"):
            specs += ExtensionMethods(
                _valid(roles.extensions, check_extension), assembly.binder, assembly.inflight
            ).specs
        with self._collecting("The policies failed"):
            problems = useless_rules(loaded, assembly, roles, specs)
            self._findings += (Finding(Severity.WARNING, problem) for problem in problems)
            if not settings.auth.is_used and roles.token_verifier is None:
                self._findings += await _empty_offer(assembly, settings, specs)
        with self._collecting("The authentication failed"):
            if settings.auth.is_used or roles.token_verifier is not None:
                from axolotl_server.authentication.assembly import make_gate

                make_gate(settings.auth, roles.token_verifier)
        with self._collecting("The setting protocol.state_keys failed"):
            _ = assembly.sealer
        with self._collecting("The setting tasks.url failed"):
            if settings.tasks.url is not None and roles.task_engine is None:
                from axolotl_server.task_engines.assembly import database_maker

                database_maker(settings)

    def _compiled_tools(self, assembly: ServerAssembly, settings: ServerSettings) -> Iterator[FeatureSpec]:
        for tool in self.tools:
            if settings.tools.overrides_for(tool.name).enabled:
                with self._collecting(f"Tool {tool.name!r} failed"):
                    binding = assembly.binder.bind_tool(tool)
                    assembly.tools.check_listing(binding)
                    self._findings += advice_about_tool(binding.spec)
                    if settings.tasks.url is not None:
                        self._findings += advice_about_stored_tasks(binding)
                    yield binding.spec

    def _compiled_prompts(self, assembly: ServerAssembly) -> Iterator[FeatureSpec]:
        for prompt in self.prompts:
            with self._collecting(f"Prompt {prompt.name!r} failed"):
                binding = assembly.prompts.compile(prompt)
                assembly.prompts.check_listing(binding)
                self._findings += advice_about_prompt(prompt, binding.spec)
                yield binding.spec

    def _compiled_resources(self, assembly: ServerAssembly) -> Iterator[FeatureSpec]:
        for resource in self.resources:
            with self._collecting(f"Resource {resource.name!r} failed"):
                spec = _compiled(resource, assembly)
                self._findings += advice_about_resource(resource, spec)
                yield spec

    @contextmanager
    def _collecting(self, what: str) -> Iterator[None]:
        """Collect an error, and go on."""
        try:
            yield
        except ConfigurationError as error:
            self._findings += map(_error, error.findings)
        except Exception as error:
            self._findings.append(_error(f"{what}: {type(error).__name__}: {error}"))


def _valid(items: Iterable[FeatureT], check: Callable[[FeatureT], None]) -> tuple[FeatureT, ...]:
    """Leave out invalid features, which were reported before."""
    return tuple(item for item in items if _passes(check, item))


def _passes(check: Callable[[FeatureT], None], item: FeatureT) -> bool:
    try:
        check(item)
    except Exception:  # a property in the user's code may raise anything
        return False
    return True


def _compiled(resource: AnyResource, assembly: ServerAssembly) -> FeatureSpec:
    if isinstance(resource, IResourceTemplate):
        template = assembly.templates.compile(resource)
        assembly.templates.check_listing(template)
        return template.spec
    binding = assembly.resources.compile(resource)
    assembly.resources.check_listing(binding)
    return binding.spec


async def _empty_offer(
    assembly: ServerAssembly, settings: ServerSettings, specs: Sequence[FeatureSpec]
) -> list[Finding]:
    """Warn if the policy leaves nothing to clients that have no token."""
    authorization, caller = assembly.authorization, settings.stdio.caller
    if not specs or authorization is None or any(await authorization.allowed(caller, specs)):
        return []
    problem = (
        f"The policy leaves clients over stdio with nothing: no rule allows {caller.subject} any feature; set "
        "stdio.principal, or allow features for anonymous clients"
    )
    return [Finding(Severity.WARNING, problem)]


def _error(message: str) -> Finding:
    return Finding(Severity.ERROR, message)


async def _finish(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
