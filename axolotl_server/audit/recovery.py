"""The end of a log as the last process left it."""

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
from axolotl_core.policies.audit import AuditRecord
from axolotl_server.audit.chain import Chain, Hash, read_link
from axolotl_server.audit.log_files import previous_segments
from axolotl_server.audit.records import timestamp


class Start(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a call that began."""

    call_id: str
    time: str
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None


class RecordSummary(msgspec.Struct, frozen=True):
    """What a reader of a log needs of each line."""

    event: str = ""
    time: str = ""
    call_id: str | None = None
    kind: Kind | None = None
    name: str | None = None
    subject: str | None = None
    tenant: str | None = None
    algorithm: str | None = None
    kept_from: int | None = None
    lost: int = 0
    unfinished: tuple[Start, ...] = ()


_log: Final = logging.getLogger("axolotl")
_NOTHING: Final = RecordSummary()
_decode: Final = msgspec.json.Decoder(RecordSummary).decode


def glance(line: bytes) -> RecordSummary:
    """Read a line; one that cannot be read says nothing."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _NOTHING


class Unfinished(dict[str, Start]):
    """Follows a log: by the id of the call, what began and did not end. It is as small as the number of such calls."""

    def follow(self, seen: RecordSummary) -> None:
        """Take notice of a line of the log."""
        if seen.event == "open":
            self.update({start.call_id: start for start in seen.unfinished})
        elif seen.call_id is None:
            return
        elif seen.event == "start":
            self[seen.call_id] = Start(seen.call_id, seen.time, seen.kind, seen.name, seen.subject, seen.tenant)
        elif seen.event == "end":
            self.pop(seen.call_id, None)

    def endings(self) -> list[AuditRecord]:
        """Say of each that nobody will ever know how it ended."""
        if self:
            _log.warning("calls whose end the last process did not live to see: %d", len(self))
        return [
            AuditRecord(
                time=timestamp(),
                event="end",
                call_id=start.call_id,
                kind=start.kind,
                name=start.name,
                subject=start.subject,
                tenant=start.tenant,
                outcome="unknown",
                reason="the process ended before the call did",
            )
            for start in self.values()
        ]


class Repair(NamedTuple):
    """The rest of a record that a crash cut off, and where it was put."""

    bytes: int
    digest: str
    saved: str


@dataclass(slots=True)
class Recovered:
    """Where to go on."""

    chain: Chain
    size: int = 0
    """Of the current file, without what was cut off."""
    first: int = 0
    """The number of the first record in it, 0 where it has none."""
    kept_from: int = 1
    """The number of the oldest record that was not dropped on purpose."""
    unfinished: Unfinished = field(default_factory=Unfinished)
    repairs: list[Repair] = field(default_factory=list)


def recover(path: Path, hash_: Hash) -> Recovered:
    """Find the last record, and put aside what stands behind it.

    Raises:
        ConfigurationError: if the last record is none that can be continued.
        OSError: if the files cannot be read or mended.
    """
    found = Recovered(Chain(hash_))
    segments = [segment.path for segment in previous_segments(path)]
    for file in (path, *reversed(segments)):
        if file.exists() and _recover_file(file, found, hash_, current=file == path):
            break
    return found


def check_last(line: bytes, where: str, hash_: Hash) -> tuple[int, bytes]:
    """Give the number and the hash of the last record.

    Raises:
        ConfigurationError: if it is none, or not one that was written with this key.
    """
    link = read_link(line)
    if link is None or not link.is_sealed_by(hash_):
        raise ConfigurationError(
            f"The last record of {where} was changed, or written with another audit.key: look at it with "
            "axolotl audit verify, and move the log away to begin a new one"
        )
    return link.seq, link.hash


def _recover_file(file: Path, found: Recovered, hash_: Hash, *, current: bool) -> bool:
    """Take from a file what it tells; answers False if it has no record."""
    with file.open("rb") as opened:
        first, last, size = _read(opened, found)
    torn = file.stat().st_size - size
    if torn:
        found.repairs.append(_put_aside(file, size))
    if not size:
        return False
    found.chain.back_to(*check_last(last, str(file), hash_))
    if current:
        link = read_link(first)
        found.first, found.size = 0 if link is None else link.seq, size
    return True


def _read(opened: BinaryIO, found: Recovered) -> tuple[bytes, bytes, int]:
    """Read a file to its end; gives its first and its last whole line, and how many bytes the whole lines have."""
    first, last, size = b"", b"", 0
    for line in opened:
        if not line.endswith(b"\n"):
            break
        last = line[:-1]
        first, size = first if size else last, size + len(line)
        seen = glance(last)
        found.unfinished.follow(seen)
        found.kept_from = max(found.kept_from, seen.kept_from or 1)
    return first, last, size


def _put_aside(file: Path, size: int) -> Repair:
    """Cut off what is no whole line; it is kept beside the log, so that nothing disappears."""
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
