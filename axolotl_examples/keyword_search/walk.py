"""A walk through directory trees that finds the files to search, until it is cancelled or its time ends."""

import errno
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from axolotl_core import Context
from axolotl_examples.keyword_search.allowed_roots import SearchRoot
from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.findings import Tally
from axolotl_examples.keyword_search.ignore_rules import IgnoreRules
from axolotl_examples.keyword_search.patterns import Selection

_RESERVED_SHARE: Final = 0.1
_MAX_RESERVED_SECONDS: Final = 1.0
"""The end of the time that is kept for writing the report."""


class OutOfTime(Exception):
    """The deadline of the call is so near that the search must end with what it has found."""


class Progress:
    """Counts steps, stops a search that is cancelled or runs out of time, and reports progress at intervals."""

    def __init__(self, context: Context, interval_seconds: float) -> None:
        self._context = context
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._steps = 0
        remaining = context.remaining_seconds
        self._reserved = 0.0 if remaining is None else min(_MAX_RESERVED_SECONDS, _RESERVED_SHARE * remaining)

    def advance(self) -> None:
        """Count a step.

        Raises `ToolCancelled` if the call was cancelled, and `OutOfTime` shortly before its deadline.
        """
        self._context.raise_if_cancelled()
        self._steps += 1
        now = time.monotonic()
        deadline = self._context.deadline
        if deadline is not None and now >= deadline - self._reserved:
            raise OutOfTime
        if now >= self._due:
            self._due = now + self._interval_seconds
            self._context.report_progress(self._steps, message=f"{self._steps:,} files and directories seen")


class FoundFile(NamedTuple):
    """A file to search. Its directory stays open until the walk continues."""

    directory: Directory
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class _Branch:
    """An open directory, its path from the allowed directory, and its ignore rules."""

    directory: Directory
    path: str
    rules: IgnoreRules | None


class TreeWalk:
    """Walks directory trees depth-first, sorted by name, without following links."""

    def __init__(
        self, selection: Selection, ignore_rules: IgnoreRules | None, tally: Tally, progress: Progress, max_depth: int
    ) -> None:
        self._selection = selection
        self._ignore_rules = ignore_rules
        self._tally = tally
        self._progress = progress
        self._max_depth = max_depth

    def files(self, roots: Sequence[SearchRoot]) -> Generator[FoundFile, None, None]:
        """Yield the files to search. Close the iterator, because it keeps directories open.

        Raises `ToolCancelled` if the call was cancelled.
        """
        for root in roots:
            try:
                with Directory.open(str(root.allowed)) as top:
                    yield from self._descend(root, self._branch(top, "", self._ignore_rules), root.parts)
            except OSError as error:
                self._tally.fail(root.given, error)

    def _descend(self, root: SearchRoot, branch: _Branch, parts: Sequence[str]) -> Generator[FoundFile, None, None]:
        """Go from the allowed directory to the root step by step, because a part may have become a link."""
        if not parts:
            yield from self._below(root, branch)
            return
        try:
            child = branch.directory.enter(parts[0])
        except NotADirectoryError:
            if len(parts) > 1:
                raise
            self._progress.advance()
            yield FoundFile(branch.directory, parts[0], root.given)
            return
        with child:
            yield from self._descend(root, self._branch(child, f"{branch.path}{parts[0]}/", branch.rules), parts[1:])

    def _below(self, root: SearchRoot, branch: _Branch) -> Generator[FoundFile, None, None]:
        """Yield the files in a directory and its subdirectories."""
        for entry in branch.directory.entries():
            self._progress.advance()
            name, is_directory = entry.name, entry.is_dir(follow_symlinks=False)
            path = branch.path + name
            below_root = path[root.path_length :]
            if branch.rules is not None and branch.rules.ignores(path, is_directory):
                self._tally.skip("ignored")
            elif self._selection.excludes(below_root, is_directory):
                continue
            elif is_directory:
                yield from self._enter(root, branch, name)
            elif not entry.is_file(follow_symlinks=False):
                self._tally.skip("links" if entry.is_symlink() else "special")
            elif self._selection.includes(below_root):
                yield FoundFile(branch.directory, name, root.label + below_root)

    def _enter(self, root: SearchRoot, branch: _Branch, name: str) -> Generator[FoundFile, None, None]:
        path = f"{branch.path}{name}/"
        try:
            with branch.directory.enter(name) as child:
                yield from self._below(root, self._branch(child, path, branch.rules))
        except OSError as error:
            self._tally.fail(root.label + path[root.path_length : -1], error)

    def _branch(self, directory: Directory, path: str, above: IgnoreRules | None) -> _Branch:
        if path.count("/") > self._max_depth:
            raise OSError(errno.ENAMETOOLONG, "Directories are nested too deeply")
        if above is None:
            return _Branch(directory, path, None)
        rules, is_cut = above.below(directory, path)
        if is_cut:
            self._tally.report(f"{path}.gitignore", "Too many patterns: only the first ones are used")
        return _Branch(directory, path, rules)
