"""The directories that the search may read, and the check that paths stay within them."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from axolotl_core import ToolError


@dataclass(frozen=True)
class SearchRoot:
    """A path to search: `parts` lead to it from an allowed directory, without links."""

    given: str
    allowed: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.allowed.joinpath(*self.parts)

    @cached_property
    def path_length(self) -> int:
        """The length of the prefix that leads from the allowed directory to the root."""
        return sum(len(part) + 1 for part in self.parts)

    @cached_property
    def label(self) -> str:
        """The prefix of reported paths: the root as the caller gave it."""
        return "" if self.given in (".", "./") else self.given.rstrip("/") + "/"


class AllowedRoots:
    """Resolves the paths of a caller to paths within the allowed directories."""

    def __init__(self, allowed_roots: Iterable[Path]) -> None:
        self._allowed = tuple(Path(os.path.realpath(root)) for root in allowed_roots)

    def resolve(self, paths: Sequence[str]) -> list[SearchRoot]:
        """Resolve links and `..`, and drop paths that lie within another one.

        Raises `ToolError`, which names the allowed directories, if a path is outside of them.
        """
        by_path: dict[Path, SearchRoot] = {}
        for given in paths:
            root = self._resolve(given)
            by_path.setdefault(root.path, root)
        return [root for path, root in by_path.items() if by_path.keys().isdisjoint(path.parents)]

    def _resolve(self, given: str) -> SearchRoot:
        if "\0" not in given:
            resolved = Path(os.path.realpath(self._allowed[0] / given))
            for allowed in self._allowed:
                if resolved.is_relative_to(allowed):
                    return SearchRoot(given, allowed, resolved.relative_to(allowed).parts)
        names = ", ".join(map(str, self._allowed))
        raise ToolError(f"{given!r} is outside the searchable directories; choose a path within: {names}")
