"""A person says yes before a tool runs, or it does not run."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall
from axolotl_core.policies.tool_rules import Approval

if TYPE_CHECKING:
    from axolotl_server.layers.approval_question import Redact

ApprovalDemand: TypeAlias = Literal["declared", "destructive", "not_read_only"]
"""Which tools need approval: those that say so, also those that say they are destructive, also all that do not say they
are read-only."""


class ApprovalLayer(ILayer):
    """Asks the user before each run of a tool that needs it; whatever is no plain yes ends the call.

    The question is asked by the server, through the client, and only an answer that came after it counts. Nothing that
    a model can write into a call has a part in it.
    """

    def __init__(
        self,
        redactor: "Callable[[FeatureSpec], Redact | None]",
        required_for: ApprovalDemand = "declared",
        tools: Sequence[str] = (),
    ) -> None:
        """Say how to write arguments without secrets, and which tools need approval besides those that say so."""
        self._redactor = redactor
        self._required_for: ApprovalDemand = required_for
        self._patterns = [pattern.casefold() for pattern in tools]

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Put the question before a tool that needs it; all others are left alone.

        Raises:
            ConfigurationError: if the tool wants an argument shown that it does not have.
        """
        if not isinstance(spec, ToolSpec) or (rule := self._rule_for(spec)) is None:
            return call_next
        from axolotl_server.layers.approval_question import (
            approve,
            message_writer,  # few tools need it
        )

        tell = message_writer(spec, rule, self._redactor(spec))

        async def approved(call: ToolCall) -> Any:
            await approve(call, tell(call.raw))
            return await call_next(call)

        return approved

    def _rule_for(self, spec: ToolSpec) -> Approval | None:
        rule = spec.tool.requires_approval
        if isinstance(rule, Approval):
            return rule
        return Approval() if rule or self._is_demanded(spec) else None

    def _is_demanded(self, spec: ToolSpec) -> bool:
        said = spec.tool.annotations
        if self._required_for == "destructive" and said.destructive is True:
            return True
        if self._required_for == "not_read_only" and said.read_only is not True:
            return True
        name = spec.name.casefold()
        return any(fnmatchcase(name, pattern) for pattern in self._patterns)
