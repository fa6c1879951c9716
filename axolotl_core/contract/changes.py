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


SCHEMA_RULES: Final = {
    "property-added": "An optional property was added",
    "property-removed": "A property was removed",
    "property-required-added": "A required property was added",
    "property-required": "A property became required",
    "property-optional": "A property became optional",
    "object-opened": "Unknown properties are allowed now",
    "object-closed": "Unknown properties are no longer allowed",
    "type-widened": "More types are allowed",
    "type-narrowed": "Fewer types are allowed",
    "type-changed": "Other types are allowed",
    "null-allowed": "Null is allowed now",
    "null-refused": "Null is no longer allowed",
    "enum-grown": "More values are allowed",
    "enum-shrunk": "Fewer values are allowed",
    "enum-changed": "Other values are allowed",
    "bound-widened": "A bound was widened",
    "bound-tightened": "A bound was tightened",
    "multiple-widened": "More multiples are allowed",
    "multiple-tightened": "Fewer multiples are allowed",
    "multiple-changed": "Other multiples are allowed",
    "pattern-added": "A pattern was added",
    "pattern-dropped": "A pattern was dropped",
    "pattern-changed": "A pattern was changed",
    "format-added": "A format was added",
    "format-dropped": "A format was dropped",
    "format-changed": "A format was changed",
    "branch-added": "An alternative was added",
    "branch-removed": "An alternative was removed",
    "value-constrained": "A value that could be anything is constrained now",
    "value-freed": "A value can be anything now",
    "constraint-added": "A constraint was added",
    "constraint-dropped": "A constraint was dropped",
    "constraint-changed": "A constraint was changed",
    "header-changed": "The HTTP header that repeats an argument was changed",
    "default-changed": "A default was changed",
    "text-changed": "A title, a description or examples were changed",
    "keyword-changed": "A keyword without an effect on validation was changed",
    "deprecation-changed": "A value was deprecated, or no longer is",
    "schema-rewritten": "The schema was rewritten and allows the same values as before, or some in the right direction",
    "values-changed": "The schema allows other values in a way that no other rule describes",
    "schema-undecided": "The schemas differ, and it could not be decided how",
}
"""The rules about schemas, with what they find."""

FEATURE_RULES: Final = {
    "feature-added": "A feature was added",
    "feature-removed": "A feature was removed",
    "feature-renamed": "A feature was removed, and one with the same schemas was added",
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
    "terms-unknown": "The limits, scopes or tool sets of a running server differ, which its lists do not show",
}
"""The rules about features, with what they find."""

RULES: Final = {**SCHEMA_RULES, **FEATURE_RULES}


def worst(impacts: "list[Impact]") -> Impact:
    """Return the worst of some impacts; without any, nothing changed, which is compatible."""
    return min(impacts, key=list(Impact).index, default=Impact.COMPATIBLE)
