"""The fence: no path leads out of the directories that the search may read."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from axolotl_core import ToolError


@dataclass(frozen=True)
class SearchRoot:
    """A place to search: from an allowed directory, `parts` lead down to it, over no link."""

    given: str
    allowed: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.allowed.joinpath(*self.parts)

    @cached_property
    def path_length(self) -> int:
        """How much of a path that begins at the allowed directory leads to the root."""
        return sum(len(part) + 1 for part in self.parts)

    @cached_property
    def label(self) -> str:
        """What a caller reads before the rest of a path: the root as it was given."""
        return "" if self.given in (".", "./") else self.given.rstrip("/") + "/"


class Fence:
    """Turns the paths of a caller into places below the allowed directories, or refuses them."""

    def __init__(self, allowed_roots: Iterable[Path]) -> None:
        self._allowed = tuple(Path(os.path.realpath(root)) for root in allowed_roots)

    def admit(self, paths: Sequence[str]) -> list[SearchRoot]:
        """Resolve the paths, links and `..` included; what lies within another of them is left to that one.

        Raises:
            ToolError: if a path leads out; the text names the allowed directories.
        """
        by_path: dict[Path, SearchRoot] = {}
        for given in paths:
            root = self._admit(given)
            by_path.setdefault(root.path, root)
        return [root for path, root in by_path.items() if by_path.keys().isdisjoint(path.parents)]

    def _admit(self, given: str) -> SearchRoot:
        if "\0" not in given:
            resolved = Path(os.path.realpath(self._allowed[0] / given))
            for allowed in self._allowed:
                if resolved.is_relative_to(allowed):
                    return SearchRoot(given, allowed, resolved.relative_to(allowed).parts)
        names = ", ".join(map(str, self._allowed))
        raise ToolError(f"{given!r} is outside of what may be searched; choose a path within: {names}")
