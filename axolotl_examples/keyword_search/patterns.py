"""Patterns as in .gitignore: pathspec translates them, and they are asked from the top of a tree downwards."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_MAX_LEAPS: Final = 2
_ANY: Final = "[^/]"
_STARS: Final = re.compile(r"(?:\[\^/\]\*)+")


class PatternRule(NamedTuple):
    """One pattern; `selects` is false where it begins with an exclamation mark."""

    expression: re.Pattern[str]
    selects: bool
    directories_only: bool


class PatternRules:
    """Patterns of which the last one that matches decides."""

    def __init__(self, rules: Iterable[PatternRule]) -> None:
        self._for_directories = tuple(rules)[::-1]
        self._for_files = tuple(rule for rule in self._for_directories if not rule.directories_only)

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Tell whether the path itself is selected; None if no pattern says anything.

        What lies above it is not considered: who walks downwards has asked for that before, as git does.
        """
        for expression, selects, _ in self._for_directories if is_directory else self._for_files:
            match = expression.match(path)
            if match is not None and match.lastindex is None:  # pathspec's only group marks a match that lies above
                return selects
        return None

    def covers(self, path: str) -> bool:
        """Tell whether a file is selected, be it by itself or by a directory above it."""
        for expression, selects, directories_only in self._for_directories:
            match = expression.match(path)
            if match is not None and (match.lastindex is not None or not directories_only):
                return selects
        return False


def parse_pattern(line: str) -> PatternRule | None:
    """Compile a line of a .gitignore file; None if it is empty, a comment or invalid, or has `**` too often."""
    line = line.rstrip("\r\n")
    bare = line.rstrip("/")
    try:
        source, selects = GitIgnoreSpecPattern.pattern_to_regex(bare or line)
        if source is None or selects is None or line.count("**") > _MAX_LEAPS:
            return None
        return PatternRule(re.compile(_linear(source), re.DOTALL), selects, directories_only=bare != line)
    except (ValueError, re.error):
        return None


def _linear(source: str) -> str:
    """Make all stars of a path segment but its last one take the first place that fits, for good.

    That finds the same names. But a name of 255 letters and a pattern such as `*a*a*a*a*b`, both of which may come
    from a stranger's repository, no longer keep the interpreter busy for hours.
    """
    head, *pieces = _STARS.split(source)
    last = len(pieces) - 1
    return head + "".join(
        f"{_ANY}*{piece}" if index == last or "/" in piece.replace(_ANY, "") else f"(?>{_ANY}*?{piece})"
        for index, piece in enumerate(pieces)
    )
