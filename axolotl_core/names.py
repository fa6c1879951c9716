"""`INameRule`, patterns of names, and the nearest known name for a misspelled one."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fnmatch import translate
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from axolotl_core.errors import ConfigurationError

if TYPE_CHECKING:
    from axolotl_core.tools.tool import ITool

_MAX_LENGTH: Final = 128
_MAX_NAMES: Final = 1000
_MAX_COMPARED: Final = 20
_MIN_SIMILARITY: Final = 0.7


class INameRule(ABC):
    """A rule for tool names, such as `namespace.method`.

    The server does not start if a tool breaks the rule. A caller that uses a name that breaks the rule reads what is
    wrong with the name, instead of that the tool was not found.
    """

    @abstractmethod
    def fault_of(self, name: str) -> str | None:
        """Describe to the caller what is wrong with a name; None if it is valid."""


class DefaultNameRule(INameRule):
    """Accepts every name that the protocol allows."""

    def fault_of(self, name: str) -> str | None:
        return None


def check_name(tool: "ITool[Any, Any]", rule: INameRule) -> None:
    """Check a tool's name before the tool is served.

    Raises:
        ConfigurationError: if the name breaks the rule.
    """
    fault = rule.fault_of(tool.name)
    if fault is not None:
        raise ConfigurationError(f"Tool {tool.name!r} breaks the server's rule for names: {fault}")


def name_pattern(pattern: str) -> str:
    """Return a regular expression for a pattern with `*` and `?`. All other characters stand for themselves."""
    return translate(pattern.replace("[", "[[]"))


def name_matches(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern with `*` and `?`."""
    return re.match(name_pattern(pattern), name) is not None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name most similar to `name`, ignoring case; None if none is similar.

    A comparison takes up to a millisecond, so only the names that share most characters with `name` are compared.
    """
    from difflib import get_close_matches  # only failing calls need it

    if len(name) > _MAX_LENGTH:
        return None
    asked = name.casefold()
    characters, length = set(asked), len(asked)
    folded = {one.casefold(): one for one in islice(known, _MAX_NAMES)}
    candidates = nsmallest(
        _MAX_COMPARED, folded, key=lambda one: (len(characters.symmetric_difference(one)), abs(len(one) - length))
    )
    near = get_close_matches(asked, candidates, n=1, cutoff=_MIN_SIMILARITY)
    return folded[near[0]] if near else None
