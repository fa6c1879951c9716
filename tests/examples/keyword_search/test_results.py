"""The results of a search."""

from pathlib import Path
from typing import Any

import pytest

from tests.examples.keyword_search.searching import Searching, searching_in


async def test_report(searching: Searching) -> None:
    """A report lists the lines with their numbers, and counts per file and in total."""
    searching.plant({"b.txt": "no\nthe key\nkey and key\n", "a/c.txt": "key", "d.txt": "nothing"})
    assert await searching.report() == {
        "match_count": 3,
        "file_count": 2,
        "files_searched": 3,
        "truncated": False,
        "next_offset": None,
        "timed_out": False,
        "files": [
            {
                "file": "a/c.txt",
                "match_count": 1,
                "matches": [{"line_number": 1, "text": "key", "before": [], "after": []}],
            },
            {
                "file": "b.txt",
                "match_count": 2,
                "matches": [
                    {"line_number": 2, "text": "the key", "before": [], "after": []},
                    {"line_number": 3, "text": "key and key", "before": [], "after": []},
                ],
            },
        ],
        "skipped": {"binary": 0, "too_large": 0, "ignored": 0, "links": 0, "special": 0, "unreadable": 0},
        "unreadable": [],
    }


async def test_schemas(searching: Searching) -> None:
    """The tool requires a keyword and root paths, and all fields have descriptions."""
    [tool] = await searching.client.list_tools()
    assert tool["name"] == "keyword_search"
    assert tool["inputSchema"]["required"] == ["keyword", "root_paths"]
    schemas = [tool["inputSchema"], tool["outputSchema"], *tool["outputSchema"]["$defs"].values()]
    fields = [(name, field) for schema in schemas for name, field in schema["properties"].items()]
    assert [name for name, field in fields if not field.get("description")] == []
    assert len(fields) == 10 + 9 + 3 + 4 + 6 + 2


async def test_several_roots(searching: Searching) -> None:
    """Roots are searched in their order and may be files; a root inside another one is searched once."""
    searching.plant({"x/1.txt": "key", "x/y/2.txt": "key", "z/3.txt": "key", "4.txt": "key"})
    assert await searching.files(root_paths=["z", "x/y", "4.txt", "./x/", "x"]) == [
        "z/3.txt",
        "4.txt",
        "./x/1.txt",
        "./x/y/2.txt",
    ]


async def test_absolute_root(searching: Searching, root: Path) -> None:
    """An absolute root gives absolute paths."""
    searching.plant({"x/1.txt": "key"})
    assert await searching.files(root_paths=[str(root)]) == [f"{root}/x/1.txt"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        pytest.param({}, [3], id="exact"),
        pytest.param({"case_sensitive": False}, [1, 2, 3, 4], id="case"),
        pytest.param({"whole_word": True}, [], id="word"),
        pytest.param({"whole_word": True, "case_sensitive": False}, [1, 4], id="word-and-case"),
    ],
)
async def test_options(searching: Searching, options: dict[str, Any], found: list[int]) -> None:
    """Case and word boundaries follow the options; non-ASCII letters are part of a word, quotes are not."""
    searching.plant({"a.txt": "Key\nKEYé\nmonkeys\n“kEy”\nke y\n"})
    assert [number for _, number, _ in await searching.lines(**options)] == found


@pytest.mark.parametrize("keyword", ["ärger", "ÄRGER", "Ärger"])
async def test_case_beyond_ascii(searching: Searching, keyword: str) -> None:
    """Ignoring case works for all alphabets."""
    searching.plant({"a.txt": "ein Ärgernis\n", "b.txt": "Arger"})
    assert await searching.files(keyword, case_sensitive=False) == ["a.txt"]


@pytest.mark.parametrize("keyword", [".", "a.c", "[x]", "\\d", "(", "*", "^", "$"])
async def test_keywords_are_literal(searching: Searching, keyword: str) -> None:
    """Special characters of regular expressions are literal."""
    searching.plant({"a.txt": "abc 1\n", "b.txt": f"<{keyword}>"})
    assert await searching.files(keyword) == ["b.txt"]
    assert await searching.files(keyword, case_sensitive=False) == ["b.txt"]


async def test_context_lines(searching: Searching) -> None:
    """Context lines are returned if they exist, and the final line break does not start another line."""
    searching.plant({"a.txt": "1\n2\nkey\r\n4\nkey\n"})
    [found] = (await searching.report(context_lines=2))["files"]
    first, second = found["matches"]
    assert (first["before"], first["text"], first["after"]) == (["1", "2"], "key", ["4", "key"])
    assert (second["before"], second["text"], second["after"]) == (["key", "4"], "key", [])


@pytest.mark.parametrize(("limit", "truncated"), [(1, True), (2, True), (3, True), (4, False), (5, False)])
async def test_limit(searching: Searching, limit: int, truncated: bool) -> None:
    """The search stops at the limit, and `truncated` is set only if there are more matches."""
    searching.plant({"a.txt": "key\n", "b.txt": "key\nkey\n", "c.txt": "no", "d.txt": "key\n", "e.txt": "no"})
    report = await searching.report(max_results=limit)
    assert report["match_count"] == sum(found["match_count"] for found in report["files"]) == min(limit, 4)
    assert report["truncated"] is truncated


async def test_long_lines(root: Path) -> None:
    """A very long line is shortened around the keyword, and so are its context lines."""
    async with searching_in(root, max_line_characters=10) as searching:
        long = "é" * 1000
        searching.plant({"a.txt": f"{long}\nkey{long}\n{long}key\n{long}key{long}\n123456key0\n"})
        matches = (await searching.report(context_lines=1))["files"][0]["matches"]
    assert [match["text"] for match in matches] == ["keyééééééé…", "…ééééééékey", "…éééékeyééé…", "123456key0"]
    assert matches[0]["before"] == ["éééééééééé…"]


async def test_large_and_binary_files(root: Path) -> None:
    """Large and binary files are counted but not searched."""
    async with searching_in(root, max_file_bytes=100) as searching:
        searching.plant({"a.bin": b"key\0", "b.txt": b"key" + b" " * 97, "c.txt": b"key" + b" " * 98, "empty": b""})
        report = await searching.report()
    assert [found["file"] for found in report["files"]] == ["b.txt"]
    assert (report["skipped"]["binary"], report["skipped"]["too_large"], report["files_searched"]) == (1, 1, 2)


async def test_other_encodings(searching: Searching) -> None:
    """Invalid UTF-8 is replaced, and the text around it is still found."""
    searching.plant({"latin.txt": "Stra\u00dfe key".encode("latin-1"), "mark.txt": "\ufeffkey"})
    assert await searching.lines() == [("latin.txt", 1, "Stra\ufffde key"), ("mark.txt", 1, "\ufeffkey")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"keyword": ""}, "keyword", id="empty"),
        pytest.param({"keyword": "a\nb"}, "keyword", id="two-lines"),
        pytest.param({"root_paths": []}, "root_paths", id="no-roots"),
        pytest.param({"root_paths": [""]}, "root_paths[0]", id="empty-root"),
        pytest.param({"max_results": 0}, "max_results", id="no-results"),
        pytest.param({"max_results": 1001}, "max_results", id="too-many-results"),
        pytest.param({"context_lines": -1}, "context_lines", id="negative-context"),
        pytest.param({"include": [""]}, "include[0]", id="empty-pattern"),
        pytest.param({"depth": 1}, "depth", id="unknown"),
    ],
)
async def test_wrong_arguments(searching: Searching, options: dict[str, Any], problem: str) -> None:
    """Invalid arguments are reported before anything is read."""
    outcome = await searching.client.call("keyword_search", {"keyword": "key", "root_paths": ["."], **options})
    assert outcome.is_error
    assert outcome.text.startswith(f"Invalid arguments: {problem}: ")
