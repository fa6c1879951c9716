"""The approval of a person before a tool runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.names import name_matches
from axolotl_core.policies.tool_rules import Approval

if TYPE_CHECKING:
    from axolotl_server.layers.approval_question import Redact

ApprovalDemand: TypeAlias = Literal["declared", "destructive", "not_read_only"]
"""The tools that need approval: those that declare it, also all that declare to be destructive, or also all that do not
declare to be read-only."""


class ApprovalLayer(ILayer):
    """Asks the user before each run of a tool that needs approval; every answer except a clear yes ends the call.

    The server asks through the client, and only an answer to that question counts. Nothing in the arguments of a call
    can replace it.
    """

    def __init__(
        self,
        redactor: "Callable[[FeatureSpec], Redact | None]",
        required_for: ApprovalDemand = "declared",
        tools: Sequence[str] = (),
    ) -> None:
        """Take a function that hides sensitive arguments, and the tools that need approval without declaring it."""
        self._redactor = redactor
        self._required_for: ApprovalDemand = required_for
        self._patterns = [pattern.casefold() for pattern in tools]

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if not isinstance(spec, ToolSpec) or (rule := self._rule_for(spec)) is None:
            return call_next
        from axolotl_server.layers.approval_question import approve, message_writer

        write_message = message_writer(spec, rule, self._redactor(spec))

        async def approved(call: Call) -> Any:
            await approve(call, write_message(call.raw))
            return await call_next(call)

        return approved

    def _rule_for(self, spec: ToolSpec) -> Approval | None:
        rule = spec.tool.requires_approval
        if isinstance(rule, Approval):
            return rule
        return Approval() if rule or self._is_required(spec) else None

    def _is_required(self, spec: ToolSpec) -> bool:
        annotations = spec.tool.annotations
        if self._required_for == "destructive" and annotations.destructive is True:
            return True
        if self._required_for == "not_read_only" and annotations.read_only is not True:
            return True
        name = spec.name.casefold()
        return any(name_matches(name, pattern) for pattern in self._patterns)
