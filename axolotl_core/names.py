"""Near misses: which name a caller may have meant."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from axolotl_core.errors import ConfigurationError

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool


class INameRule(ABC):
    """A form that every tool's name keeps, such as `namespace.method`.

    A server does not start with a tool that breaks it, and a caller that asks for such a name is told what is wrong
    with the name instead of that it was not found.
    """

    @abstractmethod
    def fault_of(self, name: str) -> str | None:
        """Say what is wrong with a name, in words for the caller; None where nothing is."""


class DefaultNameRule(INameRule):
    """Lets every name pass that the protocol lets pass."""

    def fault_of(self, name: str) -> str | None:
        """Find nothing."""
        return None


def check_name(tool: "ITool[Any, Any]", rule: INameRule) -> None:
    """Look at a tool's name before the tool is served.

    Raises:
        ConfigurationError: if the rule finds a fault in it.
    """
    fault = rule.fault_of(tool.name)
    if fault is not None:
        raise ConfigurationError(f"Tool {tool.name!r} breaks the server's rule for names: {fault}")


_NEAR_ENOUGH = 70.0


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name most like `name`, None if none is near."""
    from rapidfuzz import fuzz, process  # only unhappy calls pay for the import

    candidates = list(known)
    found = process.extract(
        name, candidates, scorer=fuzz.ratio, processor=str.casefold, limit=1, score_cutoff=_NEAR_ENOUGH
    )
    return found[0][0] if found else None
