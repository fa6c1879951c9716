"""The key file beside a store of tasks in SQLite."""

import os
import sys
from pathlib import Path

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server import connect
from tests.support.clients.full_container import Container

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes of files")


async def start(directory: Path) -> Path:
    """Start and stop a server with a store in the directory, and return its key file."""
    path = directory / "tasks.db"
    async with connect(Container(), settings={"tasks": {"url": f"sqlite:///{path}"}}) as client:
        await client.describe()
    return path.with_name("tasks.db.key")


async def refusal(directory: Path) -> str:
    """Return why a server does not start."""
    with pytest.raises(ConfigurationError) as caught:
        await start(directory)
    return str(caught.value)


async def test_a_key_is_created_and_used_again(tmp_path: Path) -> None:
    """The first server creates a key that only its owner can read, and others use it."""
    key = await start(tmp_path)
    content = key.read_bytes()
    assert (key.stat().st_mode & 0o777, len(content) > 32) == (0o600, True)
    await start(tmp_path)
    assert key.read_bytes() == content


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
async def test_a_key_that_others_can_read(tmp_path: Path, mode: int) -> None:
    """A key that is not private is a configuration error that says what to do."""
    key = await start(tmp_path)
    key.chmod(mode)
    reason = f"others can use it: run chmod 600 {key}"
    assert await refusal(tmp_path) == f"Setting tasks.url: the key file {key} cannot be used: {reason}"


async def test_the_key_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has made the key can read all tasks, so it must be this user or root."""
    key = await start(tmp_path)
    os.chown(key, 4711, -1) if os.geteuid() == 0 else None
    monkeypatch.setattr(os, "geteuid", lambda: 4712)
    reason = f"it belongs to another user (ID {key.stat().st_uid}): run this as that user, or use a directory that"
    assert (await refusal(tmp_path)).startswith(f"Setting tasks.url: the key file {key} cannot be used: {reason}")


async def test_a_key_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may provide the key."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of root")
    await start(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    await start(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "large"])
async def test_a_key_that_is_no_small_file(tmp_path: Path, kind: str) -> None:
    """What cannot be a key is refused, without waiting for a pipe."""
    key = tmp_path / "tasks.db.key"
    if kind == "pipe":
        os.mkfifo(key, 0o600)
    else:
        key.touch(0o600)
        key.write_bytes(b"x" * 2000)
    reason = "it has more than 1024 bytes" if kind == "large" else "it is not a regular file"
    assert await refusal(tmp_path) == f"Setting tasks.url: the key file {key} cannot be used: {reason}"
