"""The example `axolotl_examples.keyword_search` over stdio, compared with grep on the same tree."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.errors import BenchmarkError, NotInstalled
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.processes import started
from benchmarks.stdio_client import StdioClient

NAME = "keyword search"
_FILES = 10_000
_FILES_PER_DIRECTORY = 20
_FILES_PER_HIT = 100
_KEYWORD = "needle_in_haystack"
_IGNORED = "__pycache__/\n*.py[cod]\n*.egg-info/\nbuild/\ndist/\n.venv/\n.mypy_cache/\n.idea/\n"
_ARGUMENTS = {"keyword": _KEYWORD, "root_paths": ["."], "max_results": 1000}
_PARAMS = {"name": "keyword_search", "arguments": _ARGUMENTS}
_CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": _PARAMS}).encode() + b"\n"
_SERVE = (sys.executable, "-m", "axolotl_cli", "serve", "axolotl_examples.keyword_search:Container")


def _plant(root: Path, files: int) -> None:
    """Write a tree of source-like files of 0.5 to 10 kB; one in a hundred contains the keyword once."""
    dice = random.Random(20260728)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz_", k=dice.randint(2, 10))) for _ in range(2000)]
    lines = [" ".join(dice.choices(words, k=8)) for _ in range(2000)]
    (root / ".gitignore").write_text(_IGNORED, encoding="utf-8")
    for number in range(files):
        directory, name = divmod(number, _FILES_PER_DIRECTORY)
        path = root / f"package_{directory // 20:02}" / f"part_{directory % 20:02}" / f"module_{name:02}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = dice.randrange(1800)
        text = lines[first : first + dice.randint(10, 190)]
        if number % _FILES_PER_HIT == 0:
            text[len(text) // 2] += f" {_KEYWORD}"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")


@contextmanager
def _tree(scale: Scale) -> Iterator[tuple[Path, int]]:
    """Create a tree and yield it with the number of matches; both series use equal trees."""
    files = scale.calls(_FILES)
    with TemporaryDirectory() as directory:
        _plant(Path(directory), files)
        yield Path(directory), -(-files // _FILES_PER_HIT)


@contextmanager
def _grep(scale: Scale) -> Iterator[Measure]:
    program = shutil.which("grep")
    if program is None:
        raise NotInstalled("not installed")
    command = [program, "-rnI", _KEYWORD]

    def search(root: Path) -> int:
        return subprocess.run([*command, root], capture_output=True, check=False).stdout.count(b"\n")

    with _tree(scale) as (root, hits):

        def measure() -> Sample:
            return _timed(lambda: search(root), hits)

        measure()
        yield measure


class _SearchClient(StdioClient):
    def search(self) -> int:
        """Search the tree and return the number of matches."""
        self._write(_CALL)
        result = json.loads(self._read_lines(1)).get("result", {})
        return int(result.get("structuredContent", {}).get("match_count", 0))


@contextmanager
def _axolotl(scale: Scale) -> Iterator[Measure]:
    with _tree(scale) as (root, hits), _allowed(root), started(_SERVE, pipes=True) as process:
        client = _SearchClient(process)
        client.initialize()

        def measure() -> Sample:
            return _timed(client.search, hits)

        measure()  # fills the page cache
        yield measure


def _allowed(root: Path) -> AbstractContextManager[object]:
    return patch.dict(os.environ, KEYWORD_SEARCH_ALLOWED_ROOTS=json.dumps([str(root)]))


def _timed(search: Callable[[], int], hits: int) -> Sample:
    begin = time.perf_counter()
    found = search()
    elapsed = time.perf_counter() - begin
    if found != hits:
        raise BenchmarkError(f"found {found} of {hits}")
    return {"wall": elapsed * 1e3}


SCENARIO = Scenario(
    name=NAME,
    group="tools",
    summary="one search in a tree of 10,000 files over stdio, compared with grep -rnI",
    metrics=(Metric("wall", NAME, "ms", {"axolotl": Comparison("grep", at_most=3)}),),
    series=(Series("axolotl", _axolotl), Series("grep", _grep)),
)
