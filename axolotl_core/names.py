"""`INameRule`, checks of names and descriptions, patterns of names, and the nearest known name."""

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


MAX_DESCRIPTION_BYTES: Final = 8192
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    "|(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])"
)
"""Characters that a person does not see, or that change what is shown: control and bidirectional characters, tags,
private use. Joiners, which some scripts and emoji need, are allowed between two letters that are not ASCII."""


def fault_of_text(text: str) -> str | None:
    """Describe what is wrong with a description that models and people read; None if it is valid."""
    unsafe = _UNSAFE.search(text)
    if unsafe is not None:
        return f"it contains the invisible character U+{ord(unsafe[0]):04X} at position {unsafe.start()}; remove it"
    size = len(text.encode())
    return f"it has {size} bytes; at most {MAX_DESCRIPTION_BYTES} are allowed" if size > MAX_DESCRIPTION_BYTES else None


def fault_of_unicode_name(name: str) -> str | None:
    """Describe why a name could be taken for another one; None if it is ASCII, or plain text of one script."""
    if name.isascii():
        return None
    from unicodedata import name as name_of  # few servers have such names
    from unicodedata import normalize

    if normalize("NFKC", name) != name:
        return f"write it as {normalize('NFKC', name)!r}, which looks the same"
    scripts = {name_of(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    mixed = sorted(scripts & {"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC"})
    return f"it mixes letters that look alike: {', '.join(mixed)}" if len(mixed) > 1 else None


def name_pattern(pattern: str) -> str:
    """Return a regular expression for a pattern with `*` and `?`. All other characters stand for themselves."""
    return translate(pattern.replace("[", "[[]"))


def name_matches(name: str, pattern: str) -> bool:
    """Whether a name matches a pattern with `*` and `?`."""
    return re.match(name_pattern(pattern), name) is not None


def is_within_toolset(toolset: str, names: Iterable[str]) -> bool:
    """Whether a tool set is among some others, or inside of one of them: `shop.orders` is inside of `shop`."""
    return any(f"{toolset}.".startswith(f"{name}.") for name in names)


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


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown name: the nearest known one, or another text if none is similar."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else otherwise
