"""Hostile directory trees: unreadable entries are reported, and nothing hangs."""

import os
import socket
import stat
from pathlib import Path

import pytest

from axolotl_core import Context
from axolotl_examples.keyword_search.directory import Directory, FileReader
from tests.examples.keyword_search.searching import Listener, Searching, plant, search_directly, searching_in


async def test_special_files(searching: Searching, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes, sockets and devices are counted and never block, not even as the root."""
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        try:
            os.mknod(root / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            os.mkfifo(root / "zero")
        report = await searching.report(root_paths=[".", "pipe"])
        assert report["skipped"]["special"] == 3
        assert (await searching.report(root_paths=["pipe", "zero"]))["skipped"]["special"] == 2


def test_a_file_that_becomes_a_pipe(root: Path) -> None:
    """A file that is replaced by a pipe before it is opened does not block."""
    os.mkfifo(root / "pipe")
    with Directory.open(str(root)) as directory:
        assert FileReader(100).read(directory, "pipe") == "special"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_permissions(searching: Searching, root: Path) -> None:
    """Entries without read permission are reported with the reason, and the search continues."""
    plant(root, {"a/locked.txt": "key", "b/c.txt": "key", "d.txt": "key"})
    (root / "a/locked.txt").chmod(0)
    (root / "b").chmod(0)
    report = await searching.report()
    (root / "b").chmod(0o700)
    assert [found["file"] for found in report["files"]] == ["d.txt"]
    assert [broken["path"] for broken in report["unreadable"]] == ["a/locked.txt", "b"]
    assert {broken["reason"] for broken in report["unreadable"]} == {"Permission denied"}


async def test_refused_files(searching: Searching, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for root users: the system refuses one file and one directory."""
    searching.plant({"a/locked.txt": "key", "b/c.txt": "key", "d.txt": "key"})
    real = os.open

    def refuse(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path in ("locked.txt", "b"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    report = await searching.report()
    assert [found["file"] for found in report["files"]] == ["d.txt"]
    assert report["unreadable"] == [
        {"path": "a/locked.txt", "reason": "Permission denied"},
        {"path": "b", "reason": "Permission denied"},
    ]
    assert (report["skipped"]["unreadable"], report["files_searched"]) == (2, 1)


async def test_absent_roots(searching: Searching) -> None:
    """A root that does not exist is reported, and the others are searched."""
    searching.plant({"a.txt": "key", "b.txt": "key"})
    (searching.root / "circle").symlink_to("circle")
    roots = ["absent", "absent/too", "b.txt/c", "circle", "x" * 300, "a.txt"]
    report = await searching.report(root_paths=roots)
    assert [found["file"] for found in report["files"]] == ["a.txt"]
    assert [broken["path"] for broken in report["unreadable"]] == ["absent", "b.txt/c", "circle", "x" * 300]


def test_files_that_vanish(root: Path) -> None:
    """Entries that are deleted during the search are reported, and the search continues."""
    plant(root, {"a.txt": "key", "b.txt": "key", "c/d.txt": "key", "e.txt": "key"})

    def delete(progress: float) -> None:
        if progress == 1:
            (root / "b.txt").unlink()
            (root / "c/d.txt").unlink()
            (root / "c").rmdir()

    report = search_directly(root, Context(caller=Listener(delete)))
    assert [found.file for found in report.files] == ["a.txt", "e.txt"]
    assert [broken.path for broken in report.unreadable] == ["b.txt", "c"]


def test_files_that_shrink(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is shorter than its reported size is searched to its end."""
    plant(root, {"a.txt": "the key is short"})
    real = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: real(descriptor, min(size, 3)))
    assert search_directly(root).match_count == 1
    monkeypatch.setattr(os, "read", lambda descriptor, size: b"")
    assert search_directly(root).files_searched == 1


async def test_names_that_are_no_text(searching: Searching, root: Path) -> None:
    """File names in other encodings are searched, match patterns, and are shown with escapes."""
    latin, ignored = (root / os.fsdecode(name) for name in (b"caf\xe9.txt", b"th\xe9.txt"))
    latin.write_text("key")
    ignored.write_text("key")
    (root / ".gitignore").write_bytes(b"th\xe9.*\n")
    (root / "a\nb\t\u2028.txt").write_text("key")
    assert await searching.files(include=["*.txt"]) == ["a\nb\t\u2028.txt", "caf\\xe9.txt"]


async def test_depth(root: Path) -> None:
    """Directories that are nested too deeply are reported and not searched."""
    async with searching_in(root, max_depth=3) as searching:
        searching.plant({"1/2/3/a.txt": "key", "1/2/3/4/b.txt": "key"})
        report = await searching.report()
        deep = await searching.report(root_paths=["1/2/3/4"])
    assert [found["file"] for found in report["files"]] == ["1/2/3/a.txt"]
    assert report["unreadable"] == [{"path": "1/2/3/4", "reason": "Directories are nested too deeply"}]
    assert (deep["unreadable"], deep["files_searched"]) == (report["unreadable"], 0)


async def test_many_failures(root: Path) -> None:
    """All failures are counted, and the first ones are listed."""
    async with searching_in(root, max_depth=1) as searching:
        searching.plant({f"a/{number}/b.txt": "key" for number in range(30)})
        report = await searching.report()
    assert (report["skipped"]["unreadable"], len(report["unreadable"])) == (30, 20)


def test_descriptors(root: Path) -> None:
    """A search leaves no file descriptor open, however it ends."""
    plant(root, {"a/b/c.txt": "key\n" * 10, "a/d/e.txt": "key"})
    before = os.listdir("/proc/self/fd")
    search_directly(root)
    search_directly(root, max_results=1)

    def fail(progress: float) -> None:
        if progress == 3:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        search_directly(root, Context(caller=Listener(fail)))
    assert os.listdir("/proc/self/fd") == before
