"""Recovery of an audit log after a crash."""

import logging
import os
import shutil
from dataclasses import dataclass, field
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import Kind
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_server.audit.chain import RECORD_START, Chain, Hash, read_link
from axolotl_server.audit.log_files import check_regular, previous_segments
from axolotl_server.audit.records import without_surrogates


class Start(msgspec.Struct, frozen=True, omit_defaults=True):
    """The start of a call that has no end yet."""

    call_id: str
    time: str
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None
    issuer: str | None = None


class RecordSummary(msgspec.Struct, frozen=True):
    """The fields of a line that recovery and verification need."""

    event: str = ""
    time: str = ""
    call_id: str | None = None
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None
    issuer: str | None = None
    algorithm: str | None = None
    kept_from: int | None = None
    lost: int = 0
    unfinished: tuple[Start, ...] = ()

    def start(self, call_id: str) -> Start:
        """Return the start of a call that the line describes."""
        return Start(call_id, self.time, self.kind, self.name, self.subject, self.tenant, self.issuer)


_log: Final = logging.getLogger("axolotl")
_EMPTY: Final = RecordSummary()
_decode: Final = msgspec.json.Decoder(RecordSummary).decode


def read_summary(line: bytes) -> RecordSummary:
    """Read a line; the summary of an unreadable one is empty."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _EMPTY


class Unfinished(dict[str, Start | AuditRecord]):
    """Calls that began and did not end, by their IDs: their starts, or the records of these."""

    def update_from(self, line: RecordSummary) -> None:
        """Apply the next line of the log."""
        if line.event == "open":
            self.update({start.call_id: start for start in line.unfinished})
        elif line.call_id is None:
            return
        elif line.event == "start":
            self[line.call_id] = line.start(line.call_id)
        elif line.event == "end":
            self.pop(line.call_id, None)

    def note(self, record: AuditRecord) -> None:
        """Apply a record that was just written, without reading its line."""
        call_id, event = record.call_id, record.event
        if call_id is None:
            return
        if event == "end":
            self.pop(call_id, None)
        elif event == "start":
            self[call_id] = record

    def starts(self) -> list[Start]:
        """Return the starts of the calls."""
        return [one if isinstance(one, Start) else _start_of(one) for one in self.values()]

    def readable(self) -> list[Start]:
        """Return the calls as a line can hold them: without lone surrogates, which UTF-8 cannot encode."""
        return [Start(**without_surrogates(msgspec.structs.asdict(start))) for start in self.starts()]

    def make_endings(self) -> list[AuditRecord]:
        """Make an end with the outcome `unknown` for each."""
        if self:
            _log.warning("%d audited calls were running when the last process died", len(self))
        return [
            AuditRecord(
                time=timestamp(),
                event="end",
                call_id=start.call_id,
                kind=start.kind,
                name=start.name,
                subject=start.subject,
                tenant=start.tenant,
                issuer=start.issuer,
                outcome="unknown",
                reason="the process ended before the call did",
            )
            for start in self.starts()
        ]


def _start_of(record: AuditRecord) -> Start:
    assert record.call_id is not None
    return Start(record.call_id, record.time, record.kind, record.name, record.subject, record.tenant, record.issuer)


class Repair(NamedTuple):
    """A partial record that was cut off, and the file it was saved to."""

    bytes: int
    digest: str
    saved: str


@dataclass(slots=True)
class Recovered:
    """The state of a log at which it continues."""

    chain: Chain
    size: int = 0
    """Bytes of the current file, without the partial record."""
    first: int = 0
    """The number of the first record in the current file; 0 if it has none."""
    kept_from: int = 1
    """The number of the oldest record that rotation did not delete."""
    unfinished: Unfinished = field(default_factory=Unfinished)
    repairs: list[Repair] = field(default_factory=list)


def recover(path: Path, hash_: Hash) -> Recovered:
    """Find the last record, and move a partial one behind it to another file.

    Raises ConfigurationError if the last record cannot be continued, and OSError if files cannot be read or changed.
    """
    found = Recovered(Chain(hash_))
    segments = [segment.path for segment in previous_segments(path)]
    for file in (path, *reversed(segments)):
        if file.exists() and _recover_file(file, found, hash_, current=file == path):
            break
    return found


def check_last(line: bytes, where: str, hash_: Hash) -> tuple[int, bytes]:
    """Return the number and hash of the last record; raises ConfigurationError if it is invalid for this key."""
    link = read_link(line)
    if link is None or not link.has_valid_hash(hash_):
        raise ConfigurationError(
            f"The last record of {where} was changed, or written with another audit.key: run axolotl audit verify, "
            "and move the log away to begin a new one"
        )
    return link.seq, link.hash


def _recover_file(file: Path, found: Recovered, hash_: Hash, *, current: bool) -> bool:
    """Read a file into the state; returns False if it has no record."""
    check_regular(file)
    with file.open("rb") as opened:
        first, last, size = _read(opened, found)
        torn = os.fstat(opened.fileno()).st_size - size
        opened.seek(0)
        start = opened.read(len(RECORD_START))
    if size:
        found.chain.reset(*check_last(last, str(file), hash_))
    elif not RECORD_START.startswith(start):
        raise ConfigurationError(f"{file} is not an audit log: set another path, or move the file away")
    if torn:  # from now on, the file is known to be a log
        found.repairs.append(_move_rest(file, size))
    if not size:
        return False
    if current:
        link = read_link(first)
        found.first, found.size = 0 if link is None else link.seq, size
    return True


def _read(opened: BinaryIO, found: Recovered) -> tuple[bytes, bytes, int]:
    """Read a file; returns its first and last whole line, and the size of all whole lines."""
    first, last, size = b"", b"", 0
    for line in opened:
        if not line.endswith(b"\n"):
            break
        last = line[:-1]
        first, size = first if size else last, size + len(line)
        summary = read_summary(last)
        found.unfinished.update_from(summary)
        found.kept_from = max(found.kept_from, summary.kept_from or 1)
    return first, last, size


def _move_rest(file: Path, size: int) -> Repair:
    """Cut off a partial line, and save it beside the log."""
    saved = _free_name(file, size)
    with file.open("r+b") as damaged, open(saved, "x+b", opener=_open_privately) as copy:
        damaged.seek(size)
        shutil.copyfileobj(damaged, copy)
        copy.flush()
        os.fsync(copy.fileno())
        cut = copy.tell()
        copy.seek(0)
        digest = file_digest(copy, "sha256").hexdigest()
        _log.warning("%s ended in the middle of a record: %d bytes were moved to %s", file, cut, saved.name)
        damaged.truncate(size)
    return Repair(cut, f"sha256:{digest}", saved.name)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _free_name(file: Path, size: int) -> Path:
    names = (file.with_name(f"{file.name}.torn-{size}-{number}") for number in count(1))
    return next(name for name in names if not name.exists())
