"""The lines of a log, whatever it is kept in."""

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from axolotl_server.audit.chain import read_link
from axolotl_server.audit.segments import previous_segments

__all__ = ["LogLine", "follow", "last_lines", "lines_of"]

_SQLITE_HEAD: Final = b"SQLite format 3\0"
_LONGEST_LINE: Final = 32 * 1024 * 1024


class LogLine(NamedTuple):
    """A line without its line break, and where it stands."""

    place: str
    text: bytes
    whole: bool = True
    """Whether it ended with a line break."""


def lines_of(path: Path) -> Iterator[LogLine]:
    """Read a log from its beginning, a line at a time.

    Raises:
        OSError: if it cannot be read.
        sqlite3.Error: if it is a database and cannot be read.
    """
    if _is_sqlite(path):
        yield from _rows(path)
        return
    for opened, name in _files(path):
        with opened:
            yield from _lines(opened, name)


def last_lines(path: Path, count: int) -> list[bytes]:
    """Read the end of a log, the oldest line first.

    Raises:
        OSError: if it cannot be read.
        sqlite3.Error: if it is a database and cannot be read.
    """
    if _is_sqlite(path):
        with closing(_connect(path)) as database:
            rows = database.execute("SELECT line FROM records ORDER BY seq DESC LIMIT ?", (count,)).fetchall()
        return [row[0].encode() for row in reversed(rows)]
    found: list[bytes] = []
    for file in (path, *(segment.path for segment in reversed(previous_segments(path)))):
        if len(found) >= count:
            break
        with file.open("rb") as opened:
            ends = deque((line.text for line in _lines(opened, file.name) if line.whole), count - len(found))
        found = [*ends, *found]
    return found


def follow(path: Path, seq: int, pause: Callable[[], object]) -> Iterator[bytes]:
    """Give the lines after a record as they are written, for ever; `pause` is called when there is none.

    Raises:
        OSError: if the log cannot be read.
        sqlite3.Error: if it is a database and cannot be read.
    """
    for line in _new_rows(path, seq, pause) if _is_sqlite(path) else _new_lines(path, pause):
        link = read_link(line)
        if link is not None and link.seq > seq:
            seq = link.seq
            yield line


def _is_sqlite(path: Path) -> bool:
    if not path.exists() and previous_segments(path):
        return False  # a server died between two files
    with path.open("rb") as opened:
        return opened.read(len(_SQLITE_HEAD)) == _SQLITE_HEAD


def _files(path: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open the files in their order; a server may begin a new one meanwhile."""
    done = 0
    while True:
        current = path.open("rb") if path.exists() else None
        waiting = [segment for segment in previous_segments(path) if segment.first > done]
        if not waiting:
            if current is not None:
                yield current, path.name
            return
        if current is not None:
            current.close()
        done = waiting[0].first
        yield waiting[0].path.open("rb"), waiting[0].path.name


def _lines(opened: BinaryIO, name: str) -> Iterator[LogLine]:
    number = 0
    while line := opened.readline(_LONGEST_LINE):
        number += 1
        yield LogLine(f"{name}, line {number}", line.removesuffix(b"\n"), line.endswith(b"\n"))


def _rows(path: Path) -> Iterator[LogLine]:
    with closing(_connect(path)) as database:
        for seq, line in database.execute("SELECT seq, line FROM records ORDER BY seq"):
            yield LogLine(f"{path.name}, row {seq}", str(line).encode())


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _new_rows(path: Path, seq: int, pause: Callable[[], object]) -> Iterator[bytes]:
    with closing(_connect(path)) as database:
        while True:
            rows = database.execute("SELECT seq, line FROM records WHERE seq > ? ORDER BY seq", (seq,)).fetchall()
            yield from (line.encode() for _, line in rows)
            if rows:
                seq = rows[-1][0]
            else:
                pause()


def _new_lines(path: Path, pause: Callable[[], object]) -> Iterator[bytes]:
    """Read the current file, and the next one when there is one."""
    while True:
        with path.open("rb") as opened:
            rest = b""
            while True:
                moved = not _is_at(path, opened)
                while line := opened.readline():
                    rest += line
                    if line.endswith(b"\n"):
                        yield rest[:-1]
                        rest = b""
                if moved:
                    break
                pause()


def _is_at(path: Path, opened: BinaryIO) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return True  # the next file is about to come
    return os.path.samestat(there, os.fstat(opened.fileno()))
