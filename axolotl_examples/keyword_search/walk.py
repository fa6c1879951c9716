"""A walk through directory trees that finds the files to search."""

import errno
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from axolotl_examples.keyword_search.allowed_roots import SearchRoot
from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.ignore_rules import IgnoreFiles, IgnoreRules
from axolotl_examples.keyword_search.progress import Progress
from axolotl_examples.keyword_search.selection import Selection
from axolotl_examples.keyword_search.tally import SkipReason, Tally


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
        self, selection: Selection, ignore_files: IgnoreFiles | None, tally: Tally, progress: Progress, max_depth: int
    ) -> None:
        self._selection = selection
        self._ignore_files = ignore_files
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
                    yield from self._descend(root, self._branch(top, "", IgnoreRules()), root.parts)
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
                self._tally.skip(SkipReason.IGNORED)
            elif self._selection.excludes(below_root, is_directory):
                continue
            elif is_directory:
                yield from self._enter(root, branch, name)
            elif not entry.is_file(follow_symlinks=False):
                self._tally.skip(SkipReason.LINK if entry.is_symlink() else SkipReason.SPECIAL)
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
        if self._ignore_files is None or above is None:
            return _Branch(directory, path, None)
        rules, is_cut = self._ignore_files.rules_in(directory, path, above)
        if is_cut:
            self._tally.report(f"{path}.gitignore", "Too many patterns: only the first ones are used")
        return _Branch(directory, path, rules)
