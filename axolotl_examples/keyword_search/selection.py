"""The files selected by the patterns of a query."""

from collections.abc import Iterable, Iterator

from axolotl_core import ToolError
from axolotl_examples.keyword_search.patterns import PatternRule, PatternRules, parse_pattern


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
