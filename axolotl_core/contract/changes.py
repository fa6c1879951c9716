"""Changes of a contract, and their impact on callers."""

from enum import StrEnum
from typing import Any

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
    """The rule that found it."""
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


def worst(impacts: "list[Impact]") -> Impact:
    """Return the worst of some impacts; without any, nothing changed, which is compatible."""
    return min(impacts, key=list(Impact).index, default=Impact.COMPATIBLE)
