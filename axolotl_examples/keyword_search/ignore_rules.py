"""The rules of .gitignore files, including nested ones."""

from itertools import islice
from typing import Final

from axolotl_examples.keyword_search.directory import Directory, FileReader
from axolotl_examples.keyword_search.patterns import PatternRules, parse_pattern

_MAX_PATTERNS: Final = 1000


class IgnoreRules:
    """The rules that apply in a directory: those of its own .gitignore file, then those of its parents."""

    def __init__(
        self, reader: FileReader, levels: tuple[tuple[int, PatternRules], ...] = (), room: int = _MAX_PATTERNS
    ) -> None:
        """`room` is how many patterns subdirectories can add; each path is compared with all of them."""
        self._reader = reader
        self._levels = levels
        self._room = room

    def below(self, directory: Directory, path: str) -> tuple["IgnoreRules", bool]:
        """Return the rules of a subdirectory, and whether patterns were left out because there are too many.

        A .gitignore file that cannot be read adds no rules.
        """
        try:
            data = self._reader.read(directory, ".gitignore")
        except OSError:
            return self, False
        if not isinstance(data, bytes):
            return self, False
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        rules = (rule for line in lines if (rule := parse_pattern(line)) is not None)
        taken = list(islice(rules, self._room))
        levels = ((len(path), PatternRules(taken)), *self._levels)
        return IgnoreRules(self._reader, levels, self._room - len(taken)), next(rules, None) is not None

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Return whether a path is ignored. The nearest .gitignore file with a matching pattern decides."""
        if path == ".git" or path.endswith("/.git"):
            return True
        for base_length, patterns in self._levels:
            verdict = patterns.verdict(path[base_length:], is_directory)
            if verdict is not None:
                return verdict
        return False
