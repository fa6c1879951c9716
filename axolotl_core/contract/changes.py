"""Changes of a contract, the rules that find them, and their impact on callers."""

from enum import StrEnum
from typing import Any, Final

import msgspec


class Impact(StrEnum):
    """What a change means for callers, the worst first."""

    BREAKING = "breaking"
    RISKY = "risky"
    COMPATIBLE = "compatible"


class ContractChange(msgspec.Struct, frozen=True, rename={"impact": "class"}):
    """One change of a feature."""

    impact: Impact
    rule: str
    """The rule that found it, a key of `RULES`."""
    kind: str
    """The list that holds the feature: `tools`, `prompts`, `resources` or `skills`; or `server`."""
    feature: str
    """The name of the feature, or its URI."""
    pointer: str
    """The place inside the entry of the lock file, as a JSON pointer."""
    message: str
    old: Any = None
    new: Any = None
    evidence: Any = None
    """A JSON Schema of the values that are refused from now on, or that were never returned before."""
    undecided: bool = False
    """Whether it could not be decided if values are affected."""

    @property
    def description(self) -> str:
        """The feature and the message."""
        return f"{self.kind.removesuffix('s')} {self.feature}: {self.message}"


RULES: Final = {
    "property-added": "A property was added",
    "property-removed": "A property was removed",
    "values-changed": "Other values are allowed",
    "text-changed": "A title, a description, a default or another keyword without an effect on validation was changed",
    "feature-added": "A feature was added",
    "feature-removed": "A feature was removed",
    "name-case-changed": "The case of a name was changed",
    "output-schema-added": "An output schema was added",
    "output-schema-removed": "The output schema was removed",
    "toolset-changed": "The tool set was changed, by which rules and profiles select tools",
    "hint-lost": "A hint was lost by which clients approve calls without a question",
    "annotation-changed": "An annotation was changed",
    "scope-added": "A scope is required now",
    "scope-removed": "A scope is no longer required",
    "approval-added": "Calls need approval now",
    "approval-removed": "Calls no longer need approval",
    "limit-lowered": "A limit was lowered",
    "limit-raised": "A limit was raised",
    "task-support-added": "Calls can run as tasks now",
    "task-support-changed": "The support for tasks was changed",
    "page-changed": "The page that displays results was changed",
    "argument-added": "An optional argument was added to a prompt",
    "argument-required": "A prompt requires an argument that it did not require before",
    "argument-optional": "An argument of a prompt became optional",
    "argument-removed": "An argument of a prompt was removed",
    "resource-kind-changed": "A resource became a template, or a template a resource",
    "mime-type-changed": "The MIME type was changed",
    "variables-changed": "The variables of a resource template were changed",
    "cache-hint-changed": "The time that clients may cache the contents was changed",
    "skill-changed": "The files of a skill were changed",
}
"""The rules, with what they find."""


def worst(impacts: "list[Impact]") -> Impact:
    """Return the worst of some impacts; without any, nothing changed, which is compatible."""
    return min(impacts, key=list(Impact).index, default=Impact.COMPATIBLE)
