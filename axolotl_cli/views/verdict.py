"""The authorization decision about one principal and one feature, with all rules that were examined."""

from dataclasses import dataclass
from typing import Any

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import nearest
from axolotl_core.protocol.identity import Principal
from axolotl_server.authorization.authorization import Authorization
from axolotl_server.calls.binding import Binding
from axolotl_server.host import ServerHost


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


async def explain_decision(host: ServerHost, principal: Principal, kind: str, name: str) -> Verdict | str:
    """Return the decision of the server's policy, or an error message if there is no such feature."""
    binding = _find(host, kind, name)
    if binding is None:
        near = nearest(name, _names(host, kind))
        return f"There is no {kind} {name!r}" + (f"; did you mean {near!r}?" if near else "")
    spec: FeatureSpec = binding.spec
    caller = {
        "subject": principal.subject,
        "tenant": principal.tenant,
        "scopes": sorted(principal.scopes),
        "roles": sorted(principal.roles),
    }
    authorization = host.catalogue.authorization
    if authorization is None:
        return Verdict(caller, kind, spec.name, True, "authorization is off", "everyone may use everything", None, ())
    decision = await authorization.decide(principal, spec)
    reported_as = "not_found" if authorization.hides_denied else "forbidden"
    rules = _examine(authorization, principal, spec, decision.rule)
    return Verdict(
        caller, kind, spec.name, decision.allowed is True, decision.rule, decision.reason, reported_as, rules
    )


def _find(host: ServerHost, kind: str, name: str) -> Binding[Any] | None:
    if kind == "tool":
        return host.catalogue.find(name)
    if kind == "prompt":
        return host.prompts.find(name)
    return host.resources.find(name) or host.templates.find_template(name)


def _names(host: ServerHost, kind: str) -> list[str]:
    catalogues = {
        "tool": (host.catalogue.bindings(),),
        "prompt": (host.prompts.bindings(),),
        "resource": (host.resources.bindings(), host.templates.bindings()),
        "skill": (host.resources.bindings(), host.templates.bindings()),
    }
    return [binding.spec.name for bindings in catalogues[kind] for binding in bindings]


def _examine(
    authorization: Authorization, principal: Principal, spec: FeatureSpec, deciding: str
) -> tuple[ExaminedRule, ...]:
    if authorization.policy is None:
        return ()
    return tuple(
        ExaminedRule(one.rule, one.effect, one.matches, one.matches and one.rule == deciding, one.why_not)
        for one in authorization.policy.examine(principal, spec)
    )
