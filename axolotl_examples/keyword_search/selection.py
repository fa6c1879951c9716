"""Which files a caller wants to be searched."""

from collections.abc import Iterable, Iterator

from axolotl_core import ToolError
from axolotl_examples.keyword_search.patterns import PatternRule, PatternRules, parse_pattern


class Selection:
    """The patterns of one search; paths are relative to its root."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        """Compile the patterns.

        Raises:
            ToolError: if one is no pattern.
        """
        self._included = tuple(_parsed(include))
        self._include = PatternRules(self._included)
        self._exclude = PatternRules(_parsed(exclude))

    def leaves_out(self, path: str, is_directory: bool) -> bool:
        """Tell whether a path is excluded; nothing below an excluded directory is asked for."""
        return bool(self._exclude.verdict(path, is_directory))

    def wants(self, path: str) -> bool:
        """Tell whether a file that is not excluded is to be searched."""
        return not self._included or self._include.covers(path)


def _parsed(patterns: Iterable[str]) -> Iterator[PatternRule]:
    for pattern in patterns:
        rule = parse_pattern(pattern)
        if rule is None:
            raise ToolError(
                f"{pattern!r} is no pattern that can be used; write it as in .gitignore, "
                "such as '*.py' or 'src/**/*.ts', with '**' twice at most."
            )
        yield rule
