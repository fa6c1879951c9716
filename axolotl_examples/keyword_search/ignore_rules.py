"""The rules of .gitignore files, including nested ones."""

from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.patterns import PatternRules, parse_pattern
from axolotl_examples.keyword_search.reader import FileReader


class IgnoreRules:
    """The rules that apply in a directory: those of its own .gitignore file, then those of its parents."""

    def __init__(self, levels: tuple[tuple[int, PatternRules], ...] = ()) -> None:
        self._levels = levels

    def below(self, directory_path: str, patterns: PatternRules) -> "IgnoreRules":
        """Return the rules of a subdirectory that has its own patterns."""
        return IgnoreRules(((len(directory_path), patterns), *self._levels))

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

    def rules_in(self, directory: Directory, path: str, above: IgnoreRules) -> IgnoreRules:
        """Return the rules of a directory. A .gitignore file that cannot be read adds no rules."""
        try:
            data = self._reader.read(directory, ".gitignore")
        except OSError:
            return above
        if not isinstance(data, bytes):
            return above
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        return above.below(path, PatternRules(rule for rule in map(parse_pattern, lines) if rule is not None))
