"""Reading and verification of audit logs, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, TypeAlias

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.chain import GENESIS, Hashing, Link, read_link
from axolotl_server.audit.log_files import is_in_use, previous_segments
from axolotl_server.audit.recovery import Start, Unfinished, read_summary

_MAX_LINE_BYTES: Final = 32 * 1024 * 1024


class LogLine(NamedTuple):
    """A line without its line break, and its place in the log."""

    place: str
    text: bytes
    whole: bool = True
    """Whether it ended with a line break."""


def lines_of(path: Path) -> Iterator[LogLine]:
    """Read a log from its beginning; raises OSError if it cannot be read."""
    for opened, name in _files(path):
        with opened:
            yield from _lines(opened, name)


def _files(path: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open the files in order; a server may begin a new one in the meantime."""
    done = 0
    while True:
        current = path.open("rb") if path.exists() else None
        waiting = [segment for segment in previous_segments(path) if segment.first > done]
        if not waiting:
            if current is not None or not done:  # without any file, opening it says so
                yield current or path.open("rb"), path.name
            return
        if current is not None:
            current.close()
        done = waiting[0].first
        yield waiting[0].path.open("rb"), waiting[0].path.name


def _lines(opened: BinaryIO, name: str) -> Iterator[LogLine]:
    number = 0
    while line := opened.readline(_MAX_LINE_BYTES):
        number += 1
        yield LogLine(f"{name}, line {number}", line.removesuffix(b"\n"), line.endswith(b"\n"))


FaultKind: TypeAlias = Literal["changed", "removed", "reordered", "repeated", "torn"]


class Anchor(NamedTuple):
    """The number and hash of a record, stored where an attacker who can change the log cannot reach."""

    seq: int
    hash: str


class Fault(NamedTuple):
    """The first fault of a log."""

    kind: FaultKind
    place: str
    text: str


@dataclass(slots=True)
class VerificationReport:
    """The result of a verification."""

    records: int = 0
    first: int = 0
    last: int = 0
    head: str = GENESIS.decode()
    """The hash of the last record."""
    fault: Fault | None = None
    repairs: int = 0
    """How often a partial record was cut off after a crash."""
    lost: int = 0
    """How many records were lost while the sink failed."""
    unclosed: bool = False
    """Whether there is no closing record although no process writes: it was killed, or records were removed."""
    unfinished: list[Start] = field(default_factory=list)
    """Calls without an end, because they still run or their process died."""


def verify(path: Path, key: str | None = None, anchor: Anchor | None = None) -> VerificationReport:
    """Verify a log up to its first fault.

    Raises ConfigurationError if it was written with a key and none is given, and OSError if it cannot be read.
    """
    was_there = path.exists()
    report = _Verification(Hashing(key), anchor).run(lines_of(path))
    if report.fault is None and not (was_there or path.exists()):
        text = "the current file is missing: it was removed, or the process died while it began a new file"
        report.fault = Fault("removed", "the end", text)
    report.unclosed = report.unclosed and report.fault is None and not is_in_use(path)
    return report


def missing_log(path: Path) -> VerificationReport:
    """Make the report of a log that should exist."""
    return VerificationReport(fault=Fault("removed", path.name, "the settings name this log, and it does not exist"))


class _Verification:
    """One pass over a log."""

    def __init__(self, hashing: Hashing, anchor: Anchor | None) -> None:
        self._hashing = hashing
        self._anchor = anchor
        self._report = VerificationReport()
        self._unfinished = Unfinished()
        self._kept_from = 1
        self._head = b""

    def run(self, lines: Iterator[LogLine]) -> VerificationReport:
        report = self._report
        for line in lines:
            report.fault = self._check_line(line, lines)
            if report.fault is not None:
                return report
        report.fault = self._check_completeness()
        report.unfinished = list(self._unfinished.values())
        return report

    def _check_line(self, line: LogLine, rest: Iterator[LogLine]) -> Fault | None:
        if not line.whole:
            return Fault("torn", line.place, "the log ends in the middle of a record")
        link = read_link(line.text)
        expected = self._report.last + 1
        if link is None or not link.has_valid_hash(self._hashing.of_record):
            is_first_without_key = not self._report.records and self._hashing.algorithm == "sha256"
            if is_first_without_key and read_summary(line.text).algorithm == "hmac-sha256":
                raise ConfigurationError("The log was written with a key: set AXOLOTL_AUDIT__KEY or use --key-file")
            number = expected if link is None else link.seq
            key_hint = "" if self._hashing.algorithm == "sha256" else ", or written with another key or none"
            return Fault("changed", line.place, f"record {number} was changed{key_hint}")
        fault = self._check_place(link, expected, line.place, rest)
        if fault is None:
            self._add(link, line)
            if self._anchor is not None and self._anchor.seq == link.seq and self._anchor.hash.encode() != link.hash:
                return Fault("changed", line.place, f"record {link.seq} differs from the given anchor")
        return fault

    def _check_place(self, link: Link, expected: int, place: str, rest: Iterator[LogLine]) -> Fault | None:
        if not self._report.records:
            if link.seq == 1 and link.prev != GENESIS:
                return Fault("changed", place, "record 1 was changed")
            return None
        if link.seq == expected:
            if link.prev == self._head:
                return None
            return Fault("changed", place, f"record {expected - 1} or {expected} was replaced")
        if link.seq < self._report.first:
            return Fault("reordered", place, f"record {link.seq} comes after record {expected - 1}")
        if link.seq < expected:
            return Fault("repeated", place, f"record {link.seq} is repeated after record {expected - 1}")
        if any(other is not None and other.seq == expected for other in (read_link(line.text) for line in rest)):
            return Fault("reordered", place, f"record {link.seq} comes before record {expected}")
        return Fault("removed", place, f"{_records(expected, link.seq - 1)} missing before this one")

    def _add(self, link: Link, line: LogLine) -> None:
        report = self._report
        report.records += 1
        report.first = report.first or link.seq
        report.last, self._head, report.head = link.seq, link.hash, link.hash.decode()
        summary = read_summary(line.text)
        self._unfinished.add(summary)
        self._kept_from = max(self._kept_from, summary.kept_from or 1)
        report.repairs += summary.event == "repair"
        report.lost += summary.lost
        report.unclosed = summary.event != "close"

    def _check_completeness(self) -> Fault | None:
        """Check the beginning and the end, after all lines."""
        report, anchor = self._report, self._anchor
        if not report.records:
            return Fault("removed", "the beginning", "there are no records")
        if report.first > self._kept_from:
            gone = _records(self._kept_from, report.first - 1)
            return Fault("removed", "the beginning", f"{gone} missing, and were not deleted by rotation")
        if anchor is not None and not report.first <= anchor.seq <= report.last:
            return Fault("removed", "the end", f"record {anchor.seq}, the given anchor, is missing")
        return None


def _records(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"
