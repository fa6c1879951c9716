"""The rules of .gitignore files, including nested ones."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.patterns import PatternRule, PatternRules, parse_pattern
from axolotl_examples.keyword_search.reader import FileReader

_MAX_PATTERNS: Final = 1000


class IgnoreRules:
    """The rules that apply in a directory: those of its own .gitignore file, then those of its parents."""

    def __init__(self, levels: tuple[tuple[int, PatternRules], ...] = (), room: int = _MAX_PATTERNS) -> None:
        self._levels = levels
        self.room = room
        """How many patterns can be added in subdirectories; each path is compared with all of them."""

    def below(self, directory_path: str, rules: Sequence[PatternRule]) -> "IgnoreRules":
        """Return the rules of a subdirectory that has its own patterns."""
        return IgnoreRules(((len(directory_path), PatternRules(rules)), *self._levels), self.room - len(rules))

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Return whether a path is ignored. The nearest .gitignore file with a matching pattern decides."""
        if path == ".git" or path.endswith("/.git"):
            return True
        for base_length, patterns in self._levels:
            verdict = patterns.verdict(path[base_length:], is_directory)
            if verdict is not None:
                return verdict
        return False


class IgnoreFiles:
    """Reads .gitignore files."""

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader

    def rules_in(self, directory: Directory, path: str, above: IgnoreRules) -> tuple[IgnoreRules, bool]:
        """Return the rules of a directory, and whether patterns were left out because there are too many.

        A .gitignore file that cannot be read adds no rules.
        """
        try:
            data = self._reader.read(directory, ".gitignore")
        except OSError:
            return above, False
        if not isinstance(data, bytes):
            return above, False
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        rules = (rule for line in lines if (rule := parse_pattern(line)) is not None)
        taken = list(islice(rules, above.room))
        return above.below(path, taken), next(rules, None) is not None
