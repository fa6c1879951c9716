"""Confinement to the allowed directories."""

import errno
import functools
import os
from pathlib import Path

import pytest

from axolotl_core import ConfigurationError, Context
from axolotl_examples.keyword_search import Container
from axolotl_examples.keyword_search.directory import Directory
from axolotl_server import connect
from tests.examples.keyword_search.searching import (
    Listener,
    Searching,
    container_for,
    plant,
    search_directly,
    searching_in,
)


@pytest.fixture(autouse=True)
def secret(root: Path) -> Path:
    """Create a file outside of the allowed directory, in a sibling whose name has the same prefix."""
    beside = root.parent / "allowed_not"
    plant(beside, {"secret.txt": "key"})
    return beside


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../allowed_not",
        "inside/../..",
        "inside/../../allowed_not/secret.txt",
        "/",
        "/etc",
        "/etc/passwd",
        "//etc",
        "/proc/self/root/etc",
        "../allowed/../allowed_not",
        "absent/../../allowed_not",
        "out",
        "out/secret.txt",
        "in/out",
        "a\0b",
        "../" * 500,
    ],
)
async def test_paths_that_lead_out(searching: Searching, root: Path, secret: Path, path: str) -> None:
    """A path that leads outside is rejected, and the error names the allowed directories."""
    plant(root, {"inside/a.txt": "key"})
    (root / "out").symlink_to(secret)
    (root / "in").symlink_to("inside")
    (root / "inside/out").symlink_to("../out")
    refusal = await searching.refusal(root_paths=["inside", path])
    assert refusal == f"{path!r} is outside the searchable directories; choose a path within: {root}"


async def test_paths_that_stay_inside(searching: Searching, root: Path) -> None:
    """A path that leads out and back in is accepted, including links."""
    plant(root, {"inside/a.txt": "key"})
    (root / "in").symlink_to("inside")
    for path in ("in", "inside/../in/.", f"../{root.name}/inside", str(root / "in")):
        assert await searching.files(root_paths=[path]) == [f"{path}/a.txt"]


async def test_links_below_a_root(searching: Searching, root: Path, secret: Path) -> None:
    """Links are counted but not followed, whether to files, directories, themselves or nowhere."""
    plant(root, {"a.txt": "key"})
    targets = [str(secret), str(secret / "secret.txt"), ".", "a.txt", "absent", "5"]
    for number, target in enumerate(targets):
        (root / str(number)).symlink_to(target)
    report = await searching.report()
    assert [found["file"] for found in report["files"]] == ["a.txt"]
    assert report["skipped"]["links"] == 6


async def test_several_allowed_directories(root: Path, secret: Path) -> None:
    """Relative paths start at the first allowed directory, and an error names all of them."""
    plant(root, {"a.txt": "key"})
    async with connect(container_for(root, secret)) as client:
        searching = Searching(client, root)
        assert await searching.files(root_paths=[".", str(secret)]) == ["a.txt", f"{secret}/secret.txt"]
        assert (await searching.refusal(root_paths=["/"])).endswith(f"choose a path within: {root}, {secret}")


async def test_allowed_link(root: Path) -> None:
    """The allowed directory may be a link."""
    plant(root, {"a.txt": "key"})
    link = root.parent / "link"
    link.symlink_to(root)
    async with searching_in(link) as searching:
        assert await searching.files(root_paths=[str(link), str(root)]) == [f"{link}/a.txt"]


async def test_working_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, the working directory may be searched."""
    plant(root, {"a.txt": "key"})
    monkeypatch.chdir(root)
    async with connect(Container()) as client:
        assert await Searching(client, root).files() == ["a.txt"]


@pytest.mark.parametrize("said", ['["/absent"]', "[]", "/tmp"])
async def test_wrong_settings(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A server without allowed directories does not start."""
    monkeypatch.setenv("KEYWORD_SEARCH_ALLOWED_ROOTS", said)
    with pytest.raises(ConfigurationError, match="allowed_roots"):
        async with connect(Container()):
            pass


@pytest.fixture(params=["descriptor", "path"])
def directory_access(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open directories by descriptor, and by path as on systems without descriptor support."""
    if request.param == "path":
        monkeypatch.setattr(Directory, "open", functools.partial(Directory.open, use_descriptor=False))


@pytest.mark.usefixtures("directory_access")
def test_a_tree(root: Path) -> None:
    """Both ways to open directories find the same files."""
    plant(root, {"a/b/c.txt": "key", "a/d.txt": "key", "a/.gitignore": "d.txt"})
    assert [found.file for found in search_directly(root, root_paths=["a"]).files] == ["a/b/c.txt"]
    assert [found.file for found in search_directly(root, root_paths=["a/b/c.txt"]).files] == ["a/b/c.txt"]


@pytest.mark.usefixtures("directory_access")
def test_a_directory_that_becomes_a_link(root: Path, secret: Path) -> None:
    """A directory that is replaced by a link after it was listed is reported and not searched."""
    plant(root, {"a.txt": "", "b/c.txt": ""})

    def swap(progress: float) -> None:
        if progress == 1:
            (root / "b").rename(root.parent / "gone")
            (root / "b").symlink_to(secret)

    report = search_directly(root, Context(caller=Listener(swap)))
    assert (report.match_count, [broken.path for broken in report.unreadable]) == (0, ["b"])


@pytest.mark.usefixtures("directory_access")
def test_a_file_that_becomes_a_link(root: Path, secret: Path) -> None:
    """A file that is replaced by a link after it was listed is reported and not read."""
    plant(root, {"a.txt": "", "b.txt": ""})

    def swap(progress: float) -> None:
        if progress == 1:
            (root / "b.txt").unlink()
            (root / "b.txt").symlink_to(secret / "secret.txt")

    report = search_directly(root, Context(caller=Listener(swap)))
    assert report.match_count == 0
    assert [(broken.path, broken.reason) for broken in report.unreadable] == [("b.txt", os.strerror(errno.ELOOP))]


def test_a_directory_above_that_becomes_a_link(root: Path, secret: Path) -> None:
    """A search stays in the directory that it opened, even if the path then leads elsewhere."""
    plant(root, {"a/b/1.txt": "", "a/b/2.txt": "nothing"})
    plant(secret, {"b/2.txt": "key"})

    def swap(progress: float) -> None:
        if progress == 1:
            (root / "a").rename(root.parent / "gone")
            (root / "a").symlink_to(secret)

    report = search_directly(root, Context(caller=Listener(swap)), root_paths=["a/b"])
    assert (report.match_count, report.files_searched) == (0, 2)
