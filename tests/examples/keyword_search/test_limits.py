"""Limits of a search: pages, bytes, time, patterns, and files without a size."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import Context
from axolotl_examples.keyword_search import ignore_rules
from axolotl_examples.keyword_search.patterns import parse_pattern
from tests.examples.keyword_search.searching import (
    Listener,
    Searching,
    lines_of,
    plant,
    search_directly,
    searching_in,
)

MAX_RESULT_BYTES = 4 * 1024 * 1024

needs_procfs = pytest.mark.skipif(
    not Path("/proc/version").exists() or Path("/proc/version").stat().st_size > 0, reason="there is no procfs"
)


async def test_pages(searching: Searching) -> None:
    """All matches can be read in pages: each report says where the next one begins."""
    searching.plant({f"{number}.txt": "key\nno\nkey\n" * 2 for number in range(5)})
    everything = await searching.lines()
    pages: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        report = await searching.report(max_results=3, offset=offset)
        pages.append(report)
        offset = report["next_offset"]
    assert [line for page in pages for line in lines_of(page)] == everything
    assert [page["match_count"] for page in pages] == [3] * 6 + [2]
    assert [page["truncated"] for page in pages] == [True] * 6 + [False]


async def test_offset_after_the_end(searching: Searching) -> None:
    """An offset behind the last match gives an empty page."""
    searching.plant({"a.txt": "key"})
    report = await searching.report(offset=7)
    assert (report["match_count"], report["files"], report["next_offset"]) == (0, [], None)


@pytest.mark.parametrize("text", ["x", '"', "\x01", "é", "😀"], ids=ascii)
async def test_largest_arguments(searching: Searching, text: str) -> None:
    """No arguments that the schema allows lead to a result that is too large; the report is truncated instead."""
    searching.plant({f"{number}.txt": f"key {text * 290}\n" * 100 for number in range(12)})
    outcome = await searching.client.call(
        "keyword_search", {"keyword": "key", "root_paths": ["."], "max_results": 1000, "context_lines": 10}
    )
    assert not outcome.is_error, outcome.text[:200]
    report: Any = outcome.structured
    size = 2 * len(outcome.text.encode()) + outcome.text.count('"') + outcome.text.count("\\")
    assert MAX_RESULT_BYTES / 4 < size < MAX_RESULT_BYTES
    assert report["truncated"] is True
    following = await searching.report(max_results=1, offset=report["next_offset"])
    last = lines_of(report)[-1]
    assert lines_of(following)[0][:2] == (last[0], last[1] + 1)


async def test_long_paths_count(tmp_path: Path) -> None:
    """The names of files count for the size of a report, too."""
    deep = "/".join("d" * 200 for _ in range(10))
    plant(tmp_path, {f"{number}/{deep}/a.txt": "key" for number in range(30)})
    async with searching_in(tmp_path, max_report_bytes=20_000) as searching:
        report = await searching.report()
    assert report["truncated"] is True
    assert 0 < report["file_count"] < 20_000 / 4_000
    assert report["next_offset"] == report["match_count"]


def test_time_runs_out(tmp_path: Path) -> None:
    """Shortly before its deadline, a search returns what it has found, and says that it is incomplete."""
    plant(tmp_path, {f"{number:03}.txt": "key" for number in range(100)})
    context = Context(deadline=time.monotonic() + 3600)

    def end_of_time(steps: float) -> None:
        if steps == 10:
            context.deadline = time.monotonic()

    context.caller = Listener(end_of_time)
    report = search_directly(tmp_path, context)
    assert (report.timed_out, report.truncated, report.match_count) == (True, False, 10)
    assert search_directly(tmp_path).timed_out is False


@needs_procfs
async def test_files_without_a_size() -> None:
    """A file whose size is reported as 0 is read until its end."""
    async with searching_in(Path("/proc")) as searching:
        report = await searching.report("Linux", root_paths=["version"])
    assert report["match_count"] == 1


@needs_procfs
async def test_sizeless_file_that_is_too_large() -> None:
    """Such a file is skipped if it turns out to be too large."""
    async with searching_in(Path("/proc/self"), max_file_bytes=100) as searching:
        report = await searching.report("a", root_paths=["maps"])
    assert report["skipped"]["too_large"] == 1


async def test_many_patterns(searching: Searching, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns on the way to a file are limited in number and length, and the report names what was left out."""
    parsed: list[str] = []

    def counting(line: str) -> Any:
        parsed.append(line)
        return parse_pattern(line)

    monkeypatch.setattr(ignore_rules, "parse_pattern", counting)
    patterns = "".join(f"file{number}.log\n" for number in range(900))
    searching.plant(
        {
            ".gitignore": patterns + "x" * 200_000,
            "sub/.gitignore": patterns,
            "sub/file99.log": "key",
            "file899.log": "key",
            "sub/a.txt": "key",
        }
    )
    report = await searching.report()
    assert [found["file"] for found in report["files"]] == ["sub/a.txt"]
    assert len(parsed) <= 900 + 2 + 101
    [left_out] = report["unreadable"]
    assert left_out["path"] == "sub/.gitignore"
    assert left_out["reason"] == "Too many patterns: only the first ones are used"
    assert json.dumps(report["skipped"]) == json.dumps({**report["skipped"], "ignored": 2, "unreadable": 0})
