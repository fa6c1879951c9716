"""Heads that clients repeat."""

from axolotl_server.http.server.connection_limits import KnownHeads


def test_known_heads_hold_no_credentials() -> None:
    """A head is known with its token only, and the token comes from the request, not from what was remembered."""
    known, start = KnownHeads(), b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
    head = start + b"Authorization: Bearer secret\r\n\r\n"
    known.add(head, {b"host": b"a"}, b"Bearer secret", 2)
    known.add(start + b"\r\n", {b"host": b"a"}, None, 2)
    known.add(start + b"Authorization:\r\n\r\n", {b"host": b"a"}, b"", 2)
    assert known.find(head + b"{}") == ({b"host": b"a"}, b"Bearer secret", b"{}")
    assert known.find(start + b"\r\n[]") == ({b"host": b"a"}, None, b"[]")
    assert b"secret" not in repr(known._heads).encode()
    for other in (head.replace(b"secret", b"sekret"), start + b"Authorization:\r\n\r\n", head + head, b""):
        assert known.find(other + b"{}") is None
    assert known.find(head + b"{") is None


def test_known_heads_are_bounded() -> None:
    """Heads that differ each time, or are large, are not kept without limit."""
    known = KnownHeads()
    for number in range(1000):
        known.add(b"POST /%d HTTP/1.1\r\n\r\n" % number, {}, None, 0)
    assert 0 < (kept := len(known._heads)) <= 256
    assert known.find(b"POST /999 HTTP/1.1\r\n\r\n") == ({}, None, b"")
    known.add(b"POST /%b HTTP/1.1\r\n\r\n" % (b"a" * 4096), {}, None, 0)
    assert len(known._heads) == kept
