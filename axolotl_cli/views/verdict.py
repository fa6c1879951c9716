"""The authorization decision about one principal and one feature, with all rules that were examined."""

from dataclasses import dataclass
from typing import Any, Final

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import did_you_mean
from axolotl_core.protocol.identity import Principal
from axolotl_server.calls.binding import Binding
from axolotl_server.host import ServerHost

_KINDS: Final = ("tool", "prompt", "resource")


@dataclass(frozen=True, slots=True)
class ExaminedRule:
    """One rule of the settings, and whether it matches."""

    rule: str
    effect: str
    matches: bool
    decides: bool
    why_not: str

    @property
    def outcome(self) -> str:
        """The result of the examination, in words."""
        if not self.matches:
            return f"no: {self.why_not}"
        return "yes, and decides" if self.decides else "yes"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision and the reasons for it."""

    principal: dict[str, Any]
    kind: str
    name: str
    allowed: bool
    rule: str
    reason: str
    reported_as: str | None
    """The error that a denied caller gets; None if authorization is off."""
    rules: tuple[ExaminedRule, ...]


async def explain_decision(host: ServerHost, principal: Principal, kind: str | None, name: str) -> Verdict | str:
    """Return the decision of the server's policy, or an error message if there is no such feature.

    Without a kind, the name may be that of a tool, prompt, resource or resource template, in this order.
    """
    kinds = _KINDS if kind is None else (kind,)
    found = next(((one, binding) for one in kinds if (binding := _find(host, one, name)) is not None), None)
    if found is None:
        bindings = [binding for one in kinds for binding in _bindings(host, one)]
        known = [name for one in bindings for name in (one.spec.name, one.spec.feature.name)]
        return f"There is no {kind or 'tool, prompt or resource'} {name!r}{did_you_mean(name, known)}"
    kind, binding = found
    spec: FeatureSpec = binding.spec
    caller = {
        "subject": principal.subject,
        "tenant": principal.tenant,
        "scopes": sorted(principal.scopes),
        "roles": sorted(principal.roles),
    }
    authorization = host.assembly.tools.authorization
    if authorization is None:
        return Verdict(caller, kind, spec.name, True, "authorization is off", "everyone may use everything", None, ())
    decision = await authorization.decide(principal, spec)
    reported_as = "not_found" if authorization.hides_denied else "forbidden"
    examined = () if authorization.policy is None else authorization.policy.examine(principal, spec)
    rules = tuple(
        ExaminedRule(one.rule, one.effect, one.matches, one.matches and one.rule == decision.rule, one.why_not)
        for one in examined
    )
    return Verdict(
        caller, kind, spec.name, decision.allowed is True, decision.rule, decision.reason, reported_as, rules
    )


def _find(host: ServerHost, kind: str, name: str) -> Binding[Any] | None:
    if kind == "tool":
        return host.assembly.tools.find(name)
    if kind == "prompt":
        return host.assembly.prompts.find(name)
    found = host.assembly.resources.find(name) or host.assembly.templates.find_template(name)
    return found or next((one for one in _bindings(host, kind) if one.spec.feature.name == name), None)


def _bindings(host: ServerHost, kind: str) -> list[Binding[Any]]:
    if kind in ("resource", "skill"):
        return [*host.assembly.resources.bindings(), *host.assembly.templates.bindings()]
    return [*(host.assembly.tools.bindings() if kind == "tool" else host.assembly.prompts.bindings())]
