"""Lines in a stream of bytes."""

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from axolotl_server.transports.stdio import LineSplitter

LINES = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b" ")), max_size=10)
CUTS = st.lists(st.integers(0, 250), max_size=20)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place for place in places if place < len(data)), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def lines_of(splitter: LineSplitter, chunks: Sequence[bytes]) -> list[bytes | None]:
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*found, *splitter.finish()]


@given(LINES, CUTS)
def test_any_chunks_give_the_same_lines(lines: list[bytes], places: list[int]) -> None:
    """Chunk boundaries do not affect the lines."""
    data = b"".join(line + b"\n" for line in lines)
    assert lines_of(LineSplitter(1000), cut(data, places)) == lines


@given(LINES, st.binary(min_size=1, max_size=20), CUTS)
def test_a_last_line_needs_no_line_break(lines: list[bytes], last: bytes, places: list[int]) -> None:
    """Text after the last line break is a line when the stream ends."""
    last = last.replace(b"\n", b" ")
    data = b"".join(line + b"\n" for line in lines) + last
    assert lines_of(LineSplitter(1000), cut(data, places)) == [*lines, last]


@given(LINES, CUTS, st.integers(1, 12))
def test_only_long_lines_are_dropped(lines: list[bytes], places: list[int], limit: int) -> None:
    """A line beyond the limit is replaced, and the lines around it are kept, whatever the chunks."""
    data = b"\n".join(lines)
    expected = [None if len(line) > limit else line for line in lines]
    if lines and not lines[-1]:
        expected.pop()
    assert lines_of(LineSplitter(limit), cut(data, places)) == expected


@given(st.binary(min_size=1, max_size=5).filter(lambda piece: b"\n" not in piece), st.integers(20, 200))
def test_a_long_line_is_not_buffered(piece: bytes, count: int) -> None:
    """An endless line does not fill the memory."""
    splitter = LineSplitter(10)
    for _ in range(count):
        assert list(splitter.feed(piece)) == []
        assert sum(map(len, splitter._parts)) <= 10
    assert list(splitter.feed(b"\nnext\n")) == [None, b"next"]


def test_an_empty_stream_has_no_lines() -> None:
    """A stream without bytes has no lines."""
    assert lines_of(LineSplitter(10), [b"", b""]) == []
