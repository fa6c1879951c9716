"""What .gitignore files say, nested ones included."""

from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.patterns import PatternRules, parse_pattern
from axolotl_examples.keyword_search.reader import FileReader

__all__ = ["IgnoreFiles", "IgnoreRules"]

_NO_PATTERNS = PatternRules(())


class IgnoreRules:
    """The rules that hold in a directory: those of its own .gitignore file, then those of the files above it."""

    def __init__(
        self, patterns: PatternRules = _NO_PATTERNS, base: str = "", above: "IgnoreRules | None" = None
    ) -> None:
        self._patterns = patterns
        self._base_length = len(base)
        self._above = above

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Tell whether a path of the tree is ignored; the nearest file that says something decides."""
        if path.endswith(".git") and path[-5:-4] in ("", "/"):
            return True
        level: IgnoreRules | None = self
        while level is not None:
            verdict = level._patterns.verdict(path[level._base_length :], is_directory)
            if verdict is not None:
                return verdict
            level = level._above
        return False


class IgnoreFiles:
    """Reads the .gitignore files of the directories on the way."""

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader

    def rules_in(self, directory: Directory, base: str, above: IgnoreRules) -> IgnoreRules:
        """Give the rules that hold in a directory; a file that is missing or cannot be read says nothing."""
        try:
            data = self._reader.read(directory, ".gitignore")
        except OSError:
            return above
        if not isinstance(data, bytes):
            return above
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        rules = [rule for rule in map(parse_pattern, lines) if rule is not None]
        return IgnoreRules(PatternRules(rules), base, above)
