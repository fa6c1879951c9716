"""What the policy of a server says about one principal and one feature, with all that it looked at."""

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
    """One rule of the settings."""

    rule: str
    effect: str
    matches: bool
    decides: bool
    why_not: str

    @property
    def outcome(self) -> str:
        """What to say of it."""
        if not self.matches:
            return f"no: {self.why_not}"
        return "yes, and decides" if self.decides else "yes"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision, and what led to it."""

    principal: dict[str, Any]
    kind: str
    name: str
    allowed: bool
    rule: str
    reason: str
    told_as: str | None
    """What a refused caller is told; None where nobody is refused."""
    rules: tuple[ExaminedRule, ...]


async def reach_verdict(host: ServerHost, principal: Principal, kind: str, name: str) -> Verdict | str:
    """Have the server's policy decide; a text says that there is no such feature."""
    binding = _find(host, kind, name)
    if binding is None:
        near = nearest(name, _names(host, kind))
        return f"There is no {kind} {name!r}" + (f"; did you mean {near!r}?" if near else "")
    spec: FeatureSpec = binding.spec
    said = {
        "subject": principal.subject,
        "tenant": principal.tenant,
        "scopes": sorted(principal.scopes),
        "roles": sorted(principal.roles),
    }
    authorization = host.catalogue.authorization
    if authorization is None:
        return Verdict(said, kind, spec.name, True, "authorization is off", "everybody may use everything", None, ())
    decision = await authorization.decide(principal, spec)
    told_as = "not_found" if authorization.hides else "forbidden"
    rules = _examine(authorization, principal, spec, decision.rule)
    return Verdict(said, kind, spec.name, decision.allowed is True, decision.rule, decision.reason, told_as, rules)


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
