"""Expectations about the policy: who sees and may call what."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import did_you_mean
from axolotl_core.policies.access import Decision
from axolotl_core.protocol.identity import Principal
from axolotl_server.host import ServerHost
from axolotl_testing.assertions import indented
from axolotl_testing.principal import as_principal
from axolotl_testing.project import DEFAULT_PROFILE, ContainerSource, Project, SettingsSource


class Policy:
    """The policy of a project; the type of the fixture `axolotl_policy`."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._container: ContainerSource | None = None
        self._options: dict[str, Any] = {"overrides": {}, "settings": None, "profile": DEFAULT_PROFILE}

    def __call__(
        self,
        container: ContainerSource | None = None,
        *,
        overrides: Mapping[str, Any] | None = None,
        settings: SettingsSource | None = None,
        profile: str | None = DEFAULT_PROFILE,
    ) -> "Policy":
        """Return the policy of another container, or with overrides or other settings, as for `axolotl_client`."""
        other = Policy(self._project)
        other._container = container
        other._options = {"overrides": overrides or {}, "settings": settings, "profile": profile}
        return other

    def expect(
        self,
        *,
        subject: str = "anyone",
        roles: Iterable[str] = (),
        scopes: Iterable[str] = (),
        tenant: str | None = None,
        claims: Mapping[str, Any] | None = None,
        sees: Collection[str] | None = None,
        calls: Collection[str] | None = None,
    ) -> None:
        """Assert what a principal sees in lists, and what it may call, get or read: exactly these, of all kinds.

        Tools and prompts have names, resources and templates URIs. If a tool and a prompt have the same name, write
        `tool:name` and `prompt:name`. A message names the deciding rule of each difference. No code of a feature runs.
        """
        __tracebackhide__ = True
        if sees is None and calls is None:
            raise TypeError("expect() needs sees, calls or both")
        principal = as_principal(subject, roles=roles, scopes=scopes, tenant=tenant, claims=claims)
        # a loop of its own in a thread, because the test may have a running one
        with ThreadPoolExecutor(1, thread_name_prefix="axolotl-policy") as thread:
            seen, decisions = thread.submit(lambda: asyncio.run(self._decide(principal))).result()
        allowed = {name for name, decision in decisions.items() if decision.allowed is True}
        differences = [*_unknown({*(sees or ()), *(calls or ())}, decisions)] or [
            *(() if sees is None else _differences("sees", "does not see", seen, sees, decisions)),
            *(() if calls is None else _differences("may call", "may not call", allowed, calls, decisions)),
        ]
        if differences:
            raise AssertionError(f"The policy differs for {_described(principal)}:{indented(differences)}")

    async def _decide(self, principal: Principal) -> "tuple[frozenset[str], dict[str, Decision]]":
        """Return the names that a principal sees, and the decision on each feature by its name."""
        with self._project.open(self._container, **self._options) as (container, file, flags):
            host = ServerHost(
                container, flags=flags, file=file, toolsets=file.toolset_names, environment={}, is_audited=False
            )
            async with host:
                catalogues = host.assembly.catalogues
                visible = [binding.spec for one in catalogues for binding in await one.visible_bindings(principal)]
                specs = [binding.spec for one in catalogues for binding in one.bindings()]
                counts = Counter(spec.name for spec in specs)

                def name_of(spec: FeatureSpec) -> str:
                    return spec.name if counts[spec.name] == 1 else f"{spec.kind}:{spec.name}"

                authorization = host.assembly.tools.authorization
                is_off = Decision(True, "no policy", "authorization is off")
                decisions = {
                    name_of(spec): is_off if authorization is None else await authorization.decide(principal, spec)
                    for spec in specs
                }
                return frozenset(map(name_of, visible)), decisions


def _unknown(names: Iterable[str], decisions: Mapping[str, Decision]) -> Iterator[str]:
    for name in sorted({*names} - {*decisions}):
        same = [f"{known!r}" for known in decisions if known.partition(":")[2] == name]
        if same:
            yield f"{name!r} is the name of several features: write {' or '.join(same)}"
            continue
        yield f"there is no tool, prompt or resource {name!r}{did_you_mean(name, decisions)}"


def _differences(
    does: str, does_not: str, actual: Collection[str], expected: Collection[str], decisions: Mapping[str, Decision]
) -> Iterator[str]:
    for name in sorted({*actual} ^ {*expected}):
        decision = decisions[name]
        by = f"{'allowed' if decision.allowed is True else 'denied'} by {decision.rule!r}"
        reason = f" ({decision.reason})" if decision.reason else ""
        what = f"{does} {name}, which is not expected" if name in actual else f"{does_not} {name}"
        yield f"{what}: {by}{reason}"


def _described(principal: Principal) -> str:
    parts = [
        f"{kind} {', '.join(sorted(values))}"
        for kind, values in (("roles", principal.roles), ("scopes", principal.scopes))
        if values
    ]
    tenant = [f"tenant {principal.tenant}"] if principal.tenant is not None else []
    return " with ".join(filter(None, [principal.subject, " and ".join([*parts, *tenant])]))
