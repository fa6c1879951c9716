"""Audit records as JSON lines: rotation, restarts, crashes and full disks."""

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit import recovery
from axolotl_server.audit.jsonl_store import JsonlStore
from axolotl_server.audit.log_reading import Anchor, verify
from tests.support.audited_calls import read_log, record, store_at, write_log
from tests.support.commands import ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the log."""
    return tmp_path / "audit.jsonl"


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[..., JsonlStore]]:
    """Open logs that are closed after the test."""
    stores: list[JsonlStore] = []

    def open_store(**options: Any) -> JsonlStore:
        store = store_at(path, **options)
        store.open()
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


@contextmanager
def full_disk(store: JsonlStore) -> Iterator[None]:
    """Let every write fail as on a full disk."""
    saved = os.dup(store._descriptor)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, store._descriptor)
    try:
        yield
    finally:
        os.dup2(saved, store._descriptor)
        os.close(saved)
        os.close(full)


def events(path: Path) -> list[str]:
    return [record["event"] for record in read_log(path)]


def files(path: Path) -> list[Path]:
    return [*sorted(path.parent.glob(f"{path.name}.0*")), path]


def test_a_log_tells_of_itself(path: Path) -> None:
    """A log starts with an opening record, ends with a closing one, and is not readable by others."""
    write_log(path, 1)
    first, call, last = read_log(path)
    assert (first["event"], first["algorithm"], first["kept_from"]) == ("open", "sha256", 1)
    assert (call["event"], last["event"]) == ("end", "close")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_chain_continues_after_a_restart(path: Path) -> None:
    """After a restart, the chain continues."""
    write_log(path, 2)
    write_log(path, 3)
    report = verify(path)
    assert (report.fault, report.records) == (None, 9)
    assert events(path) == ["open", "end", "end", "close", "open", "end", "end", "end", "close"]


def test_only_one_process_writes(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """A second server with the same log does not start."""
    opened()
    with pytest.raises(ConfigurationError, match="in use by another process"):
        opened()


def test_a_log_must_be_a_regular_file(tmp_path: Path) -> None:
    """A log cannot be a directory or a device."""
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(ConfigurationError, match="not a regular file"):
            store_at(path).open()


def test_a_log_must_not_be_a_link(tmp_path: Path, path: Path) -> None:
    """A link to another file is refused, also in the place of the lock, and the file stays as it is."""
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    path.symlink_to(other)
    with pytest.raises(ConfigurationError, match="is a symbolic link: set the path that it points to"):
        store_at(path).open()
    path.unlink()
    path.with_name("audit.jsonl.lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic link"):
        store_at(path).open()
    assert other.read_bytes() == b"precious"


@pytest.mark.parametrize("content", [b"precious", b"\0" * 100, b"precious\nlines\nof text", b'{"sequence": 1}'])
def test_a_file_of_another_program(path: Path, content: bytes) -> None:
    """A file that is not a log is left as it is."""
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"is not an audit log|was changed, or written with another"):
        store_at(path).open()
    assert path.read_bytes() == content
    assert sorted(one.name for one in path.parent.iterdir()) == ["audit.jsonl", "audit.jsonl.lock"]


@pytest.mark.parametrize("torn", [b"{", b'{"seq":5,"prev":"', b"\0" * 5000, b"half a reco"])
def test_a_torn_end_is_cut_off_and_kept(torn: bytes, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An incomplete record after a crash is moved to another file, with a record and a warning."""
    write_log(path, 2)
    with path.open("ab") as log:
        log.write(torn)
    fault = verify(path).fault
    assert fault is not None
    assert fault.kind == "torn"
    write_log(path, 1)
    [repair] = [record for record in read_log(path) if record["event"] == "repair"]
    assert repair["bytes"] == len(torn)
    saved = path.parent / repair["saved"]
    assert (saved.read_bytes(), saved.stat().st_mode & 0o777) == (torn, 0o600)
    assert repair["saved"] in caplog.text
    report = verify(path)
    assert (report.fault, report.repairs) == (None, 1)


def test_a_log_with_only_a_torn_record(path: Path) -> None:
    """A crash during the first record leaves a log that starts again."""
    path.write_bytes(b'{"seq":1,"pr')
    write_log(path, 1)
    assert verify(path).fault is None
    assert events(path) == ["open", "repair", "end", "close"]


@pytest.mark.parametrize("last", [b'{"seq":1}\n', b"\n", b"no JSON\n"])
def test_a_changed_end_is_not_continued(last: bytes, path: Path) -> None:
    """If the last record is invalid, the log is left unchanged and the server does not start."""
    write_log(path, 1)
    with path.open("ab") as log:
        log.write(last)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="axolotl audit verify"):
        store_at(path).open()
    assert path.read_bytes() == before
    store_at(path.with_name("other.jsonl")).open()


def test_another_key_does_not_continue_a_log(path: Path) -> None:
    """A log continues only with its original key."""
    write_log(path, 1, key="a key of some length")
    with pytest.raises(ConfigurationError, match="with another audit"):
        store_at(path, "another key, as long").open()


def test_rotation(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """A full file is named after its first record, and the next one is chained to its last record."""
    store = opened(max_bytes=1000)
    for number in range(10):
        store.append([record(number)])
    *full, current = files(path)
    assert len(full) > 1
    before = json.loads(full[-1].read_bytes().splitlines()[-1])
    first = read_log(current)[0]
    assert (first["event"], first["prev"], first["seq"]) == ("open", before["hash"], before["seq"] + 1)
    assert [int(file.suffix[1:]) for file in full] == [read_log(file)[0]["seq"] for file in full]
    assert verify(path).fault is None


def test_rotation_after_a_restart(path: Path) -> None:
    """What earlier runs wrote counts: the file is rotated when it is full, and named after its first record."""
    write_log(path, 3, max_bytes=600)
    write_log(path, 3)
    write_log(path, 1, max_bytes=path.stat().st_size)
    *full, current = files(path)
    assert len(full) > 1
    assert [int(file.suffix[1:]) for file in full] == [read_log(file)[0]["seq"] for file in full]
    assert read_log(current)[0]["event"] == "open"
    assert verify(path).fault is None


def test_old_files_are_dropped(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """Only the configured number of full files is kept, and the log states where it starts."""
    store = opened(max_bytes=600, max_files=2)
    for number in range(20):
        store.append([record(number)])
    assert len(files(path)) == 3
    report = verify(path)
    assert report.fault is None
    assert report.first > 1
    fault = verify(path, anchor=Anchor(1, "")).fault
    assert fault is not None
    assert fault.text == "record 1, the given anchor, is missing"
    files(path)[0].unlink()
    fault = verify(path).fault
    assert fault is not None
    assert (fault.kind, fault.place) == ("removed", "the beginning")


def test_a_restart_does_not_excuse_a_missing_file(path: Path) -> None:
    """A file that was removed between two runs is still detected after a restart."""
    write_log(path, 20, max_bytes=600)
    files(path)[0].unlink()
    write_log(path, 1)
    fault = verify(path).fault
    assert fault is not None
    assert fault.kind == "removed"


def test_a_file_in_the_middle_is_missed(path: Path) -> None:
    """A missing file between others is detected."""
    write_log(path, 20, max_bytes=600)
    files(path)[2].unlink()
    fault = verify(path).fault
    assert fault is not None
    assert (fault.kind, "missing before this one" in fault.text) == ("removed", True)


@pytest.mark.parametrize("leftover", [None, b"", b'{"seq":'])
def test_a_crash_between_two_files(leftover: bytes | None, path: Path) -> None:
    """A crash between two files loses nothing."""
    write_log(path, 4)
    path.rename(path.with_name(f"{path.name}.000000000001"))
    if leftover is not None:
        path.write_bytes(leftover)
    write_log(path, 1, max_bytes=1)
    assert verify(path).fault is None
    _, begun, _ = files(path)
    assert (begun.suffix, read_log(begun)[0]["seq"]) == (".000000000007", 7)


def test_calls_that_never_ended(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A start without an end is reported by a verification, and the next start adds an unknown outcome."""
    store = store_at(path)
    store.open()
    store.append([record(1, event="start", name="transfer", subject="alice"), record(2, event="start"), record(2)])
    leave_behind(store)
    [unfinished] = verify(path).unfinished
    assert (unfinished.call_id, unfinished.name, unfinished.subject) == (f"{1:016x}", "transfer", "alice")
    write_log(path, 0)
    *_, unknown, _ = read_log(path)
    assert (unknown["outcome"], unknown["call_id"], unknown["name"]) == ("unknown", f"{1:016x}", "transfer")
    assert verify(path).unfinished == []
    assert "1 audited calls were running when the last process died" in caplog.text


def test_unfinished_calls_survive_rotation(path: Path) -> None:
    """Unfinished calls are remembered after rotation, even if their file is dropped."""
    store = store_at(path, max_bytes=600, max_files=1)
    store.open()
    store.append([record(1000, event="start")])
    for number in range(20):
        store.append([record(number)])
    leave_behind(store)
    assert [start.call_id for start in verify(path).unfinished] == [f"{1000:016x}"]
    write_log(path, 1, max_bytes=1)
    before, after = files(path)[-2:]
    assert [one["call_id"] for one in read_log(before) if one.get("outcome") == "unknown"] == [f"{1000:016x}"]
    assert read_log(after)[0]["unfinished"] == []


def test_a_full_disk(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """A failed write raises and leaves no trace; the chain then continues without a restart."""
    store = opened()
    store.append([record(1)])
    with full_disk(store), pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        store.append([record(2)])
    store.append([record(3)])
    assert verify(path).fault is None
    assert [one["call_id"] for one in read_log(path)[1:]] == [f"{1:016x}", f"{3:016x}"]


def test_a_failed_rotation_is_repeated(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """A rotation that fails at its first step is repeated later."""
    store = opened(max_bytes=100)
    in_the_way = path.with_name(f"{path.name}.000000000001")
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        store.append([record(1)])
    in_the_way.rmdir()
    store.append([record(2)])
    assert verify(path).fault is None
    assert len(files(path)) == 2


def test_a_file_that_cannot_be_begun(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """A rotation that fails at its second step is repeated later."""
    store = opened(max_bytes=100)
    with no_more_files(), pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        store.append([record(1)])
    assert not path.exists()
    store.append([record(2)])
    assert verify(path).fault is None
    assert len(files(path)) == 2


@contextmanager
def no_more_files() -> Iterator[None]:
    """Prevent this process from opening more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_one = os.dup(0)
    os.close(next_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PARTS = """
    import resource, sys
    from pathlib import Path
    from axolotl_server.audit.log_reading import verify
    from tests.support.audited_calls import record, store_at

    path = Path(sys.argv[1])
    store = store_at(path)
    store.open()
    store.append([record(1)])
    size = path.stat().st_size
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
    try:
        store.append([record(2)])
    except OSError as error:
        print(error.errno, path.stat().st_size - size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.append([record(3)])
    print(verify(path).fault)
"""


def test_room_for_a_part_of_a_record(path: Path) -> None:
    """A partially written record is removed at once."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(PARTS), str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{errno.EFBIG} 0", "None"]


def leave_behind(store: JsonlStore) -> None:
    """Release a log like a killed process."""
    os.close(store._descriptor)
    store._lock.release()


def test_records_are_not_read_back(opened: Callable[..., JsonlStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """The starts and ends of calls are known from the records, so no line is decoded after it was encoded."""
    store, decoded, decode = opened(), list[bytes](), recovery._decode

    def counted(line: bytes) -> Any:
        decoded.append(line)
        return decode(line)

    monkeypatch.setattr(recovery, "_decode", counted)
    for number in range(10):
        store.append([record(number, event="start")])
        store.append([record(number)])
    assert not decoded


def test_a_running_call_with_a_lone_surrogate_survives_rotation(path: Path, opened: Callable[..., JsonlStore]) -> None:
    """The next file lists a running call although UTF-8 cannot encode the name of its caller."""
    store = opened(max_bytes=1)
    store.append([record(1, event="start", subject="ada\ud800")])
    store.append([record(2)])
    opening = next(line for line in read_log(path) if line["event"] == "open")
    assert [start["subject"] for start in opening["unfinished"]] == ["ada\\ud800"]
