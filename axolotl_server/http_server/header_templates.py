"""Heads that a client repeats: recognized by comparison instead of being parsed again."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

MAX_HEAD_BYTES: Final = 2048
"""The size of the largest head that is worth a template."""
_MAX_TEMPLATES: Final = 4
_MAX_LEARNED: Final = 16
"""How many templates a connection makes; a client whose heads always differ gets none after that."""
_MAX_RECENT: Final = 8
_MAX_RECENT_BYTES: Final = 512
"""How many heads a connection keeps whole, and how large they may be; to compare one is quicker than a template."""
_MAX_VALUE_BYTES: Final = 8192
_MAX_DIGITS: Final = 9
_CREDENTIALS: Final = re.compile(rb"[!-~]+(?: [!-~]+)*")
_LENGTH_NAME: Final = b"content-length"
_CREDENTIALS_NAME: Final = b"authorization"


class HeadTemplate:
    """A head that the parser has accepted, with gaps for `Content-Length` and `Authorization`.

    The rest of the head is compared byte by byte, so a match means what it meant to the parser. Credentials are not
    kept: the gate sees them with every request.
    """

    __slots__ = ("_first", "_gaps", "_start", "headers")

    def __init__(self, first: bytes, gaps: tuple[tuple[bool, bytes], ...], headers: Mapping[bytes, bytes]) -> None:
        self._first = first
        self._start = len(first)
        self._gaps = gaps
        """For each gap whether it is the length, and the bytes up to the next gap or the body."""
        self.headers = headers
        """Without the two headers that vary."""

    def match(self, data: bytes) -> tuple[bytes | None, bytes] | None:
        """Return the credentials and the body if the data is one whole request with this head."""
        if not data.startswith(self._first):
            return None
        at, length, credentials = self._start, b"", None
        for is_length, following in self._gaps:
            stop = data.find(b"\r", at, at + _MAX_VALUE_BYTES)
            if stop < 0 or not data.startswith(following, stop):
                return None
            if is_length:
                length = data[at:stop]
            else:
                credentials = data[at:stop]
            at = stop + len(following)
        if not length.isdigit() or len(length) > _MAX_DIGITS or len(data) - at != int(length):
            return None
        if credentials is not None and not _CREDENTIALS.fullmatch(credentials):
            return None
        return credentials, data[at:]


class PlainHeadTemplate(HeadTemplate):
    """A head whose only gap is the length, as those of most clients without a token."""

    __slots__ = ("_rest", "_rest_size")

    def __init__(self, first: bytes, gaps: tuple[tuple[bool, bytes], ...], headers: Mapping[bytes, bytes]) -> None:
        super().__init__(first, gaps, headers)
        [(_, self._rest)] = gaps
        self._rest_size = len(self._rest)

    def match(self, data: bytes) -> tuple[None, bytes] | None:
        """Return the body if the data is one whole request with this head."""
        if data.startswith(self._first):
            at = self._start
            stop = data.find(b"\r", at, at + _MAX_DIGITS + 1)
            length = data[at:stop]
            if length.isdigit() and data.startswith(self._rest, stop):
                end = stop + self._rest_size
                if len(data) - end == int(length):
                    return None, data[end:]
        return None


def make_template(head: bytes, headers: Mapping[bytes, bytes]) -> HeadTemplate | None:
    """Make the template of a head that was accepted; None if it is written in an unusual way."""
    if len(head) > MAX_HEAD_BYTES or not head.endswith(b"\r\n\r\n"):
        return None
    parts, is_length = [b""], []
    for number, line in enumerate(head[:-2].split(b"\r\n")[:-1]):
        name, colon, value = line.partition(b":")
        name = name.lower()
        if b"\n" in line or b"\r" in line or (number and not colon):
            return None
        if number and name in (_LENGTH_NAME, _CREDENTIALS_NAME):
            plain = value.strip(b" \t")
            if not value.endswith(plain) or not plain:
                return None
            parts[-1] += line[: -len(plain)]
            parts.append(b"\r\n")
            is_length.append(name == _LENGTH_NAME)
        else:
            parts[-1] += line + b"\r\n"
    parts[-1] += b"\r\n"
    if is_length.count(True) != 1 or len(is_length) > 2:
        return None
    constant = {name: value for name, value in headers.items() if name not in (_LENGTH_NAME, _CREDENTIALS_NAME)}
    kind = PlainHeadTemplate if len(is_length) == 1 else HeadTemplate
    return kind(parts[0], tuple(zip(is_length, parts[1:], strict=True)), constant)


RecentHead: TypeAlias = tuple[int, bytes, Mapping[bytes, bytes]]
"""The size of a head, the head, and its headers."""


class KnownHeads:
    """The heads that a connection has sent: templates, and the latest ones as they were."""

    __slots__ = ("_accepts", "_learned", "_max_body_bytes", "_templates", "recent")

    def __init__(self, max_body_bytes: int, accepts: Callable[[Mapping[bytes, bytes]], bool]) -> None:
        self._max_body_bytes = max_body_bytes
        self._accepts = accepts
        self._templates: tuple[HeadTemplate, ...] = ()
        self._learned = 0
        self.recent: dict[int, RecentHead] = {}
        """The latest heads without credentials, by the size of the whole request."""

    def find(self, data: bytes) -> tuple[Mapping[bytes, bytes], bytes | None, bytes] | None:
        """Return headers, credentials and body if the data is one whole request that matches a template."""
        for template in self._templates:
            found = template.match(data)
            if found is not None and len(found[1]) <= self._max_body_bytes:
                credentials, body = found
                if credentials is None:
                    self._remember(data, len(data) - len(body), template.headers)
                return template.headers, credentials, body
        return None

    def learn(self, head: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Make a template of a head that the parser has accepted, if the checks of its headers accept it, too."""
        if self._learned >= _MAX_LEARNED or head.find(b"\r\n\r\n") != len(head) - 4:
            return
        template = make_template(head, headers)
        if template is not None and self._accepts(template.headers):
            self._learned += 1
            self._templates = (template, *self._templates[: _MAX_TEMPLATES - 1])

    def _remember(self, data: bytes, size: int, headers: Mapping[bytes, bytes]) -> None:
        if size <= _MAX_RECENT_BYTES:
            if len(self.recent) >= _MAX_RECENT:
                self.recent.clear()
            self.recent[len(data)] = size, data[:size], headers
