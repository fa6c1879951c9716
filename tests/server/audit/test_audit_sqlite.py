"""Audit records in a SQLite database."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.log_reading import VerificationReport, verify
from axolotl_server.audit.sqlite_store import SqliteStore
from tests.support.audited_calls import record

CALLS = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the database."""
    return tmp_path / "audit.db"


def write(path: Path, count: int = CALLS, key: str | None = None) -> None:
    store = SqliteStore(path, Hashing(key))
    store.open()
    store.append([record(number, subject="alice", outcome="ok") for number in range(count)])
    store.close()


def run(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return [database.execute(statement).fetchall() for statement in statements]


def kind_of(report: VerificationReport) -> str | None:
    return None if report.fault is None else report.fault.kind


def test_a_database_is_a_log(path: Path) -> None:
    """Rows are chained like lines, across restarts, and have columns to search."""
    write(path)
    write(path)
    report = verify(path)
    assert (report.fault, report.records, report.last) == (None, 2 * CALLS + 4, 2 * CALLS + 4)
    query = "SELECT count(*) FROM records WHERE event = 'end' AND subject = 'alice' AND outcome = 'ok'"
    assert run(path, query) == [[(2 * CALLS,)]]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM records WHERE seq = 3", "removed"),
        ("DELETE FROM records WHERE seq = 1", "removed"),
        ("DELETE FROM records", "removed"),
        ("UPDATE records SET line = replace(line, 'alice', 'bobby') WHERE seq = 3", "changed"),
        ("UPDATE records SET line = (SELECT line FROM records WHERE seq = 2) WHERE seq = 3", "repeated"),
        ("INSERT INTO records (seq, line) SELECT 100, line FROM records WHERE seq = 4", "repeated"),
        ("UPDATE records SET seq = CASE seq WHEN 3 THEN -4 WHEN 4 THEN -3 END WHERE seq IN (3, 4)", "reordered"),
    ],
)
def test_tampered_rows_are_detected(statement: str, kind: str, path: Path) -> None:
    """Removed, changed, repeated and reordered rows are detected."""
    write(path)
    run(path, statement, "UPDATE records SET seq = -seq WHERE seq < 0")
    assert kind_of(verify(path)) == kind


def test_columns_cannot_differ_from_the_line(path: Path) -> None:
    """The columns are derived from the line and cannot be changed separately."""
    write(path)
    with pytest.raises(sqlite3.OperationalError, match="generated column"):
        run(path, "UPDATE records SET subject = 'bob'")


def test_a_commit_that_fails_leaves_the_chain_as_it_was(path: Path) -> None:
    """A failed commit raises, and the chain then continues."""
    store = SqliteStore(path, Hashing(None))
    store.open()
    run(path, "CREATE TRIGGER no BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(sqlite3.IntegrityError, match="no"):
        store.append([record(1)])
    run(path, "DROP TRIGGER no")
    store.append([record(2)])
    store.close()
    report = verify(path)
    assert (report.fault, report.records) == (None, 3)


def test_calls_that_never_ended(path: Path) -> None:
    """A start without an end gets an unknown outcome from the next process, once."""
    store = SqliteStore(path, Hashing(None))
    store.open()
    store.append([record(1, event="start"), record(2, event="start"), record(2), record(3, event="start")])
    store.append([record(3)])
    store.close()
    assert [start.call_id for start in verify(path).unfinished] == [f"{1:016x}"]
    write(path, 0)
    write(path, 0)
    assert run(path, "SELECT call_id FROM records WHERE outcome = 'unknown'") == [[(f"{1:016x}",)]]
    assert verify(path).unfinished == []


def test_one_process_and_one_key(path: Path) -> None:
    """A database that is in use, has another key or is not a database is not written to."""
    store = SqliteStore(path, Hashing("a key of some length"))
    store.open()
    with pytest.raises(ConfigurationError, match="in use"):
        SqliteStore(path, Hashing("a key of some length")).open()
    store.close()
    with pytest.raises(ConfigurationError, match="another audit"):
        SqliteStore(path, Hashing(None)).open()
    path.write_text("this is no database, and has been none before")
    with pytest.raises(ConfigurationError, match="not a database"):
        SqliteStore(path, Hashing(None)).open()
