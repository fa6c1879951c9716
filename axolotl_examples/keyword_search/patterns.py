"""Patterns in .gitignore syntax, translated to regular expressions by pathspec, and the selection of a query."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from axolotl_core import ToolError

_MAX_DOUBLE_STARS: Final = 2
_MAX_PATTERN_LENGTH: Final = 1000
_ANY: Final = "[^/]"
_STARS: Final = re.compile(r"(?:\[\^/\]\*)+")


class PatternRule(NamedTuple):
    """One pattern. `selects` is false if the pattern begins with an exclamation mark."""

    expression: re.Pattern[str]
    selects: bool
    directories_only: bool


class PatternRules:
    """A list of patterns, of which the last matching one decides."""

    def __init__(self, rules: Iterable[PatternRule]) -> None:
        self._for_directories = tuple(rules)[::-1]
        self._for_files = tuple(rule for rule in self._for_directories if not rule.directories_only)

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Return whether the path itself is selected, or None if no pattern matches.

        Parent directories are not considered, because a top-down walk has already checked them, as git does.
        """
        for expression, selects, _ in self._for_directories if is_directory else self._for_files:
            match = expression.match(path)
            if match is not None and match.lastindex is None:  # pathspec's only group matches for parent directories
                return selects
        return None

    def covers(self, path: str) -> bool:
        """Return whether a file is selected, either by itself or through a parent directory."""
        for expression, selects, directories_only in self._for_directories:
            match = expression.match(path)
            if match is not None and (match.lastindex is not None or not directories_only):
                return selects
        return False


def parse_pattern(line: str) -> PatternRule | None:
    """Compile a line of a .gitignore file, or return None for blank lines, comments and unsupported patterns.

    A pattern with more than two `**` or more than 1,000 characters is unsupported.
    """
    line = line.rstrip("\r\n")
    if len(line) > _MAX_PATTERN_LENGTH:
        return None
    bare = line.rstrip("/")
    try:
        source, selects = GitIgnoreSpecPattern.pattern_to_regex(bare or line)
        if source is None or selects is None or line.count("**") > _MAX_DOUBLE_STARS:
            return None
        return PatternRule(re.compile(_without_backtracking(source), re.DOTALL), selects, directories_only=bare != line)
    except (ValueError, re.error):
        return None


def _without_backtracking(source: str) -> str:
    """Make every star of a path segment except the last one atomic and lazy, which matches the same names.

    Otherwise an untrusted repository could keep the interpreter busy for hours, with a pattern such as `*a*a*a*a*b`
    and a file name of 255 letters.
    """
    head, *pieces = _STARS.split(source)
    last = len(pieces) - 1
    return head + "".join(
        f"{_ANY}*{piece}" if index == last or "/" in piece.replace(_ANY, "") else f"(?>{_ANY}*?{piece})"
        for index, piece in enumerate(pieces)
    )


class Selection:
    """The include and exclude patterns of a query. Paths are relative to the search root."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        """Compile the patterns. Raises `ToolError` if one of them is invalid."""
        self._included = tuple(_parsed(include))
        self._include = PatternRules(self._included)
        self._exclude = PatternRules(_parsed(exclude))

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Return whether a path is excluded. Excluded directories are not entered."""
        return bool(self._exclude.verdict(path, is_directory))

    def includes(self, path: str) -> bool:
        """Return whether a file that is not excluded should be searched."""
        return not self._included or self._include.covers(path)


def _parsed(patterns: Iterable[str]) -> Iterator[PatternRule]:
    for pattern in patterns:
        rule = parse_pattern(pattern)
        if rule is None:
            raise ToolError(
                f"{pattern!r} is not a valid pattern; use .gitignore syntax, "
                "for example '*.py' or 'src/**/*.ts', with at most two '**'."
            )
        yield rule
