"""A keyword matcher: a fast check of a file's bytes, then an exact search in its lines."""

import re
from collections.abc import Iterator

from axolotl_examples.keyword_search.models import KeywordQuery, LineMatch


class KeywordMatcher:
    """Finds one keyword in many files."""

    def __init__(self, query: KeywordQuery, max_line_characters: int) -> None:
        self._expression = _expression(query)
        self._needle = query.keyword.encode()
        self._folds = not query.case_sensitive
        self._context_lines = query.context_lines
        self._width = max_line_characters

    def may_occur_in(self, data: bytes) -> bool:
        """Return quickly whether the keyword may occur. This rules out most files."""
        if not self._folds:
            return self._needle in data
        if self._needle.isascii():
            return self._needle.lower() in data.lower()
        return self._expression.search(data.decode("utf-8", "replace")) is not None

    def matches(self, data: bytes) -> Iterator[LineMatch]:
        """Yield the lines that contain the keyword, from top to bottom."""
        lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
        for index, line in enumerate(lines):
            if found := self._expression.search(line):
                first = max(0, index - self._context_lines)
                yield LineMatch(
                    line_number=index + 1,
                    text=self._cut(line, *found.span()),
                    before=[self._cut(near) for near in lines[first:index]],
                    after=[self._cut(near) for near in lines[index + 1 : index + 1 + self._context_lines]],
                )

    def _cut(self, line: str, begin: int = 0, end: int = 0) -> str:
        """Shorten a long line to the text around its part from `begin` to `end`."""
        line = line.removesuffix("\r")
        if len(line) <= self._width:
            return line
        start = max(0, min((begin + end - self._width) // 2, len(line) - self._width))
        stop = start + self._width
        return f"{'…' if start > 0 else ''}{line[start:stop]}{'…' if stop < len(line) else ''}"


def _expression(query: KeywordQuery) -> re.Pattern[str]:
    # The check of the bytes misses non-ASCII letters that fold to ASCII, such as the Kelvin sign (folds to "k").
    flags = "" if query.case_sensitive else "ai" if query.keyword.isascii() else "i"
    keyword = f"(?{flags}:{re.escape(query.keyword)})"
    return re.compile(rf"(?<!\w){keyword}(?!\w)" if query.whole_word else keyword)
