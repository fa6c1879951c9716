"""The hash chain of the audit log, which detects any change except a removed end."""

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.errors import ConfigurationError
from axolotl_server.audit.chain import Chain, Hashing, read_link
from axolotl_server.audit.log_reading import Anchor, VerificationReport, verify
from tests.support.audited_calls import record, store_at, write_log

KEY = "a key that nobody guesses"
CALLS = 8
RECORDS = CALLS + 2
"""Including the records of opening and closing."""

places = st.integers(0, RECORDS - 1)

Judge = Callable[[Sequence[bytes]], VerificationReport]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A log, written once."""
    return write_log(tmp_path_factory.mktemp("log") / "audit.jsonl", CALLS)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Verify other lines in place of the log's own."""
    path = tmp_path_factory.mktemp("judged") / "audit.jsonl"

    def judged(changed: Sequence[bytes]) -> VerificationReport:
        path.write_bytes(b"".join(changed))
        return verify(path)

    return judged


def kind_of(report: VerificationReport) -> str | None:
    return None if report.fault is None else report.fault.kind


def test_an_untouched_log(lines: list[bytes], judge: Judge) -> None:
    """An unchanged log is valid, and its head is the hash of the last record."""
    report = judge(lines)
    last = read_link(lines[-1][:-1])
    assert last is not None
    assert (kind_of(report), report.records, report.first, report.last) == (None, RECORDS, 1, RECORDS)
    assert report.head.encode() == last.hash


@given(place=st.integers(0), mask=st.integers(1, 255))
def test_any_changed_byte_is_found(place: int, mask: int, lines: list[bytes], judge: Judge) -> None:
    """A change of any byte is detected, in records, hashes and between records."""
    whole = bytearray(b"".join(lines))
    whole[place % len(whole)] ^= mask
    assert judge([bytes(whole)]).fault is not None


@given(first=places, count=st.integers(1, RECORDS))
def test_removed_records_are_found(first: int, count: int, lines: list[bytes], judge: Judge) -> None:
    """Missing records are detected, except at the end."""
    left = [*lines[:first], *lines[first + count :]]
    expected = None if first + count >= RECORDS and first > 0 else "removed"
    assert kind_of(judge(left)) == expected


@given(first=places, second=places)
def test_swapped_records_are_found(first: int, second: int, lines: list[bytes], judge: Judge) -> None:
    """Swapped records are detected, with the first wrong position."""
    changed = list(lines)
    changed[first], changed[second] = changed[second], changed[first]
    report = judge(changed)
    if first == second:
        assert report.fault is None
    else:
        assert report.fault is not None
        assert report.fault.kind == "reordered"
        assert report.records <= max(first, second)


@given(which=places, where=st.integers(0, RECORDS))
def test_repeated_records_are_found(which: int, where: int, lines: list[bytes], judge: Judge) -> None:
    """A repeated record is detected at any position."""
    changed = [*lines[:where], lines[which], *lines[where:]]
    assert kind_of(judge(changed)) in ("repeated", "reordered")


@given(bodies=st.lists(st.text(max_size=40), max_size=8), key=st.none() | st.text(min_size=1, max_size=80))
def test_any_record_can_be_linked(bodies: list[str], key: str | None) -> None:
    """Any record can be encoded, sealed, chained and parsed again."""
    hash_ = Hashing(key).of_record
    chain = Chain(hash_)
    head = chain.head
    for number, text in enumerate(bodies, 1):
        body = b'{"name":%b}' % ascii(text).encode().replace(b"'", b'"').replace(b"\\x", b"\\u00")
        link = read_link(chain.link(body)[:-1])
        assert link is not None
        assert (link.seq, link.prev, link.has_valid_hash(hash_)) == (number, head, True)
        head = link.hash


def test_the_keyed_hash_is_fixed() -> None:
    """The hashes of a key are HMAC-SHA-256 with a key for each purpose; with others, old logs would not be valid."""
    hashing = Hashing(KEY)
    for data in (b'{"seq":1', b"x" * 300):
        derived = sha256(b"axolotl audit chain\0" + KEY.encode()).digest()
        assert hashing.of_record(data) == hmac.digest(derived, data, "sha256").hex()
    assert hashing.of_record(b'{"seq":1') == "148e1c6d8834dd33826c5972ab0d0d4292e5f9106743f42b41b3812042450775"
    assert hashing.of_arguments(b"{}") == "7843ea9d2a1c58ccfe29cacdcf8e76d745c3c7e2500fd6e2416b8f38ac6258ad"


def forge(lines: Sequence[bytes], key: str | None) -> list[bytes]:
    """Rewrite a log without its fourth record."""
    chain = Chain(Hashing(key).of_record)
    bodies = [b"{" + line.split(b'",', 1)[1].rsplit(b',"hash"', 1)[0] + b"}" for line in lines]
    return [chain.link(body) for place, body in enumerate(bodies) if place != 3]


def test_a_chain_without_a_key_can_be_forged(lines: list[bytes], judge: Judge) -> None:
    """Without a key, a whole log can be rewritten; a key or an external anchor prevents that."""
    assert judge(forge(lines, None)).fault is None


def test_a_chain_with_a_key_cannot_be_forged(tmp_path: Path) -> None:
    """Without the key, a valid chain cannot be forged."""
    path = tmp_path / "audit.jsonl"
    written = write_log(path, CALLS, KEY)
    assert verify(path, KEY).fault is None
    for wrong in (None, "another key that somebody made"):
        path.write_bytes(b"".join(forge(written, wrong)))
        assert kind_of(verify(path, KEY)) == "changed"


def test_a_key_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    """Verifying a log with a key reports a missing key, not an invalid log."""
    path = tmp_path / "audit.jsonl"
    write_log(path, 1, KEY)
    with pytest.raises(ConfigurationError, match="written with a key"):
        verify(path)


@given(kept=st.integers(1, RECORDS), remembered=st.integers(1, RECORDS))
def test_an_anchor_tells_of_a_missing_end(
    kept: int, remembered: int, lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A log whose end was removed is valid, unless it is compared with an anchor."""
    path = tmp_path_factory.getbasetemp() / "anchored.jsonl"
    path.write_bytes(b"".join(lines[:kept]))
    link = read_link(lines[remembered - 1][:-1])
    assert link is not None
    assert verify(path).fault is None
    report = verify(path, anchor=Anchor(remembered, link.hash.decode()))
    assert kind_of(report) == (None if remembered <= kept else "removed")


def test_an_anchor_tells_of_a_forged_log(lines: list[bytes], tmp_path: Path) -> None:
    """A rewritten log has a different hash at the anchor."""
    path = tmp_path / "audit.jsonl"
    link = read_link(lines[5][:-1])
    assert link is not None
    path.write_bytes(b"".join(forge(lines, None)))
    assert kind_of(verify(path, anchor=Anchor(6, link.hash.decode()))) == "changed"


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_end(cut: int, lines: list[bytes], judge: Judge) -> None:
    """An incomplete last record is distinguished from a changed one."""
    assert kind_of(judge([*lines[:-1], lines[-1][:-cut]])) == "torn"


def test_an_empty_log(judge: Judge) -> None:
    """An empty file is not a valid log, because a log always has an opening record."""
    assert kind_of(judge([])) == "removed"


@given(max_bytes=st.integers(1, 3000), count=st.integers(0, 12))
def test_rotation_does_not_break_the_chain(
    max_bytes: int, count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At any file size, rotated files contain all records, in order and chained."""
    path = tmp_path_factory.mktemp("rotated") / "audit.jsonl"
    write_log(path, count, max_bytes=max_bytes)
    report = verify(path)
    assert report.fault is None
    files = len(list(path.parent.glob("audit.jsonl.0*"))) + 1
    assert report.records == count + 1 + files


@pytest.mark.parametrize(
    "text", ["\n", "\r", "\x00", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", '"', "ü"]
)
def test_no_text_breaks_a_line(text: str, tmp_path: Path) -> None:
    """A record stays on one line for every line reader, whatever names it contains."""
    path = tmp_path / "audit.jsonl"
    store = store_at(path)
    store.open()
    store.append([record(subject=f"a{text}b", event="start"), record(subject=f"a{text}b")])
    store.close()
    content = path.read_bytes()
    assert verify(path).fault is None
    assert len(content.decode().splitlines()) == content.count(b"\n") == 4
    assert not any((byte < 0x20 and byte != 0x0A) or byte == 0x7F for byte in content)
