"""Selection of files by patterns and by .gitignore files."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axolotl_examples.keyword_search.patterns import PatternRules, parse_pattern
from tests.examples.keyword_search.searching import Searching, plant, search_directly

TREE = dict.fromkeys(("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.txt", "tests/f.py"), "key")


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        (["*.py"], [], ["a.py", "src/c.py", "src/deep/d.py", "tests/f.py"]),
        (["/*.py"], [], ["a.py"]),
        (["src/"], [], ["src/c.py", "src/deep/d.py", "src/deep/e.txt"]),
        (["src/**/*.txt", "b.*"], [], ["b.txt", "src/deep/e.txt"]),
        (["*.py", "!src/**"], [], ["a.py", "tests/f.py"]),
        (["a.py/"], [], []),
        ([], ["*.py"], ["b.txt", "src/deep/e.txt"]),
        ([], ["src", "tests/"], ["a.py", "b.txt"]),
        ([], ["src/*", "!src/deep/"], ["a.py", "b.txt", "src/deep/d.py", "src/deep/e.txt", "tests/f.py"]),
        (["*.py"], ["deep/"], ["a.py", "src/c.py", "tests/f.py"]),
        (["[ab].*"], ["?.txt"], ["a.py"]),
    ],
)
async def test_patterns(searching: Searching, include: list[str], exclude: list[str], found: list[str]) -> None:
    """Patterns use the syntax of .gitignore, relative to the root."""
    searching.plant(TREE)
    assert await searching.files(include=include, exclude=exclude) == found


async def test_patterns_below_a_root(searching: Searching) -> None:
    """Patterns are relative to each root; a root that is a file is always searched."""
    searching.plant(TREE)
    assert await searching.files(root_paths=["src", "b.txt"], include=["/*.py"]) == ["src/c.py", "b.txt"]


@pytest.mark.parametrize("pattern", ["[", "[z-a]", "a\\", "!", "/", "# note", "**/a/**/b/**/c"])
@pytest.mark.parametrize("field", ["include", "exclude"])
async def test_invalid_patterns(searching: Searching, field: str, pattern: str) -> None:
    """An invalid pattern is named in the error message."""
    assert f"{pattern!r} is not a valid pattern" in await searching.refusal(**{field: ["*.py", pattern]})


async def test_ignore_files(searching: Searching) -> None:
    """Ignore files apply to everything below them, the nearest one decides, and .git is never searched."""
    searching.plant(
        {
            ".gitignore": "*.log\n/build/\n# comment\n[\nlast/**\n",
            ".git/config": "key",
            "a.log": "key",
            "a.txt": "key",
            "build/a.txt": "key",
            "sub/.gitignore": "!keep.log\n*.txt\r\n",
            "sub/a.txt": "key",
            "sub/build/b.md": "key",
            "sub/drop.log": "key",
            "sub/keep.log": "key",
            "last/a.md": "key",
        }
    )
    report = await searching.report()
    assert [found["file"] for found in report["files"]] == ["a.txt", "sub/build/b.md", "sub/keep.log"]
    assert report["skipped"]["ignored"] == 6
    everything = await searching.report(respect_ignore_files=False)
    assert (everything["file_count"], everything["skipped"]["ignored"]) == (9, 0)


async def test_ignore_files_above_the_root(searching: Searching) -> None:
    """Ignore files between the allowed directory and the root apply too."""
    searching.plant({".gitignore": "*.log", "a/.gitignore": "/b/c.txt", "a/b/c.txt": "key", "a/b/d.log": "key"})
    searching.plant({"a/b/e.txt": "key"})
    assert await searching.files(root_paths=["a/b"]) == ["a/b/e.txt"]


async def test_odd_ignore_files(searching: Searching) -> None:
    """An ignore file that is a directory, a link or not text is ignored."""
    searching.plant({"a/.gitignore/x": "", "a/1.txt": "key", "b/.gitignore": b"*\n\0", "b/2.txt": "key", "all": "*"})
    searching.plant({"c/3.txt": "key"})
    (searching.root / "c" / ".gitignore").symlink_to("../all")
    assert await searching.files() == ["a/1.txt", "b/2.txt", "c/3.txt"]


@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "*?" * 60 + "b", "*[ab]" * 60 + "c", "**/*a*/**/*a*a*b"])
def test_patterns_take_no_time(pattern: str) -> None:
    """A pattern that would cause catastrophic backtracking is fast; the limit is generous, as it would take hours."""
    rule = parse_pattern(pattern)
    assert rule is not None
    begin = time.perf_counter()
    assert PatternRules([rule]).verdict("/".join(["a" * 250] * 16), is_directory=False) is None
    assert time.perf_counter() - begin < 2


NAMES = ["a", "b", "ab", "c.py", "build", "x y", "[z]"]
SEGMENTS = ["a", "b", "*", "**", "a*", "*b", "*.py", "?", "[ab]", "[!a]", "build", "*a*b*", "\\[z\\]", "x*y"]
PATTERNS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
IGNORE_FILES = st.dictionaries(
    st.sampled_from(["", "a/", "b/", "a/build/"]),
    st.lists(PATTERNS, min_size=1, max_size=5).map("\n".join),
    min_size=1,
    max_size=3,
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=40)
@given(paths=st.sets(PATHS, min_size=3, max_size=20), ignore_files=IGNORE_FILES)
def test_git_agrees(paths: set[str], ignore_files: dict[str, str]) -> None:
    """For random trees and ignore files, exactly those files are searched that git would list."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        for path in sorted(paths):
            above = [root / parent for parent in Path(path).parents]
            if not (root / path).exists() and not any(parent.is_file() for parent in above):
                plant(root, {path: "key"})
        for place, text in ignore_files.items():
            if (root / place).is_dir():
                plant(root, {f"{place}.gitignore": f"{text}\n# key\n"})
        assert [found.file for found in search_directly(root).files] == sorted(
            _listed_by_git(root), key=lambda path: path.split("/")
        )


def _listed_by_git(root: Path) -> list[str]:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for command in (["init", "--quiet"], ["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"]):
        done = subprocess.run(["git", *command], cwd=root, env=environment, capture_output=True, check=True)
    return [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]
