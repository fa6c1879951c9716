"""Recovery of an audit log after a crash."""

import logging
import os
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.feature import Kind
from axolotl_core.policies.audit import AuditRecord
from axolotl_server.audit.chain import RECORD_START, Chain, Hash, read_link
from axolotl_server.audit.log_files import check_regular, previous_segments


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


_log: Final = logging.getLogger("axolotl")
_decode: Final = msgspec.json.Decoder(RecordSummary).decode


def read_summary(line: bytes) -> RecordSummary:
    """Read a line; the summary of an unreadable one is empty."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return RecordSummary()


class Unfinished(dict[str, Start]):
    """The starts of calls that did not end, by their IDs."""

    def add(self, line: RecordSummary | AuditRecord) -> None:
        """Apply the next line of the log, or the record that was written to it."""
        if isinstance(line, RecordSummary) and line.event == "open":
            self.update({start.call_id: start for start in line.unfinished})
        elif line.call_id is None:
            return
        elif line.event == "start":
            self[line.call_id] = Start(
                line.call_id, line.time, line.kind, line.name, line.subject, line.tenant, line.issuer
            )
        elif line.event == "end":
            self.pop(line.call_id, None)


class Repair(NamedTuple):
    """A partial record that was cut off, and the file it was saved to."""

    bytes: int
    digest: str
    saved: str


@dataclass(slots=True)
class LogState:
    """The state of a log between two records."""

    chain: Chain
    size: int = 0
    """Bytes of the current file, without a partial record."""
    first: int = 1
    """The number of the first record in the current file, or of the next one if it has none."""
    kept_from: int = 1
    """The number of the oldest record that rotation did not delete."""
    unfinished: Unfinished = field(default_factory=Unfinished)
    repairs: list[Repair] = field(default_factory=list)
    """Made by the recovery."""


def recover(path: Path, hash_: Hash) -> LogState:
    """Find the last record, and move a partial one behind it to another file.

    Raises ConfigurationError if the last record cannot be continued, and OSError if files cannot be read or changed.
    """
    state = LogState(Chain(hash_))
    for file in (path, *(segment.path for segment in reversed(previous_segments(path)))):
        if file.exists() and _recover_file(file, state, hash_):
            if file != path:  # the current file is missing or has no record
                state.first, state.size = state.chain.seq + 1, 0
            break
    return state


def _recover_file(file: Path, state: LogState, hash_: Hash) -> bool:
    """Read a file into the state; returns False if it has no record."""
    check_regular(file)
    first, last, rest, size = b"", b"", b"", 0
    with file.open("rb") as opened:
        for line in opened:
            if not line.endswith(b"\n"):
                rest = line
                break
            last = line[:-1]
            first, size = first if size else last, size + len(line)
            summary = read_summary(last)
            state.unfinished.add(summary)
            state.kept_from = max(state.kept_from, summary.kept_from or 1)
    if size:
        link = read_link(last)
        if link is None or not link.has_valid_hash(hash_):
            raise ConfigurationError(
                f"The last record of {file} was changed, or written with another audit.key: run axolotl audit verify, "
                "and move the log away to begin a new one"
            )
        state.chain.reset(link.seq, link.hash)
        beginning = read_link(first)
        state.first, state.size = link.seq + 1 if beginning is None else beginning.seq, size
    elif not RECORD_START.startswith(rest[: len(RECORD_START)]):
        raise ConfigurationError(f"{file} is not an audit log: set another path, or move the file away")
    if rest:  # from now on, the file is known to be a log
        state.repairs.append(_move_rest(file, size, rest))
    return size > 0


def _move_rest(file: Path, size: int, rest: bytes) -> Repair:
    """Cut off a partial line, and save it beside the log."""
    names = (file.with_name(f"{file.name}.torn-{size}-{number}") for number in count(1))
    saved = next(name for name in names if not name.exists())
    with open(saved, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as copy:
        copy.write(rest)
        copy.flush()
        os.fsync(copy.fileno())
    _log.warning("%s ended in the middle of a record: %d bytes were moved to %s", file, len(rest), saved.name)
    os.truncate(file, size)
    return Repair(len(rest), f"sha256:{sha256(rest).hexdigest()}", saved.name)
