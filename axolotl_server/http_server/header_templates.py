"""Heads that a client repeats: recognized by comparison instead of being parsed again."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from axolotl_core.protocol.identity import Principal

_T = TypeVar("_T")

MAX_HEAD_BYTES: Final = 2048
"""The size of the largest head that is worth a template."""
_MAX_TEMPLATES: Final = 4
_MAX_LEARNED: Final = 16
"""How many templates a connection makes; a client whose heads always differ gets none after that."""
_MAX_RECENT: Final = 4
_MAX_RECENT_BYTES: Final = 1024
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

    def match(self, data: bytes) -> tuple[int, int, int] | None:
        """Return where credentials begin and end and where the body begins, if the data is one request with this head.

        Credentials that are empty do not exist. The others are not checked.
        """
        if not data.startswith(self._first):
            return None
        at, length, begin, end = self._start, b"", 0, 0
        for is_length, following in self._gaps:
            stop = data.find(b"\r", at, at + _MAX_VALUE_BYTES)
            if stop < 0 or not data.startswith(following, stop):
                return None
            if is_length:
                length = data[at:stop]
            else:
                begin, end = at, stop
            at = stop + len(following)
        if not length.isdigit() or len(length) > _MAX_DIGITS or len(data) - at != int(length):
            return None
        return begin, end, at


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
    return HeadTemplate(parts[0], tuple(zip(is_length, parts[1:], strict=True)), constant)


RecentHead: TypeAlias = tuple[int, bytes, Mapping[bytes, bytes]]
"""The size of a head, the head, and its headers."""
_Protected: TypeAlias = tuple[int, bytes, int, bytes, int, Mapping[bytes, bytes]]
"""A head without its credentials: where they begin, what is before, where they end, what is after, size and headers."""
KnownRequest: TypeAlias = tuple[Mapping[bytes, bytes], bytes | None, bytes, Principal | None]
"""The headers, credentials and body of a request, and the principal if the credentials were accepted recently."""


class KnownHeads:
    """The heads that a connection has sent: templates, and the latest ones, which need only be compared."""

    __slots__ = ("_accepts", "_learned", "_max_body_bytes", "_protected", "_recognize", "_templates", "recent")

    def __init__(
        self,
        max_body_bytes: int,
        accepts: Callable[[Mapping[bytes, bytes]], bool],
        recognize: Callable[[bytes], Principal | None],
    ) -> None:
        self._max_body_bytes = max_body_bytes
        self._accepts = accepts
        self._recognize = recognize
        self._templates: tuple[HeadTemplate, ...] = ()
        self._learned = 0
        self.recent: dict[int, RecentHead] = {}
        """The latest heads without credentials, by the size of the whole request."""
        self._protected: dict[int, _Protected] = {}
        """The latest heads with credentials, which are not kept themselves."""

    def find(self, data: bytes) -> KnownRequest | None:
        """Return the parts of a request, if the data is one whole request with a head that is known."""
        known = self._protected.get(len(data))
        if known is not None:
            begin, before, end, after, size, headers = known
            if data[:begin] == before and data[end:size] == after:
                credentials = data[begin:end]
                principal = self._recognize(credentials)
                if principal is not None:  # so these are the bytes that were accepted
                    return headers, credentials, data[size:], principal
        return self._match(data)

    def _match(self, data: bytes) -> KnownRequest | None:
        for template in self._templates:
            found = template.match(data)
            if found is None or len(data) - found[2] > self._max_body_bytes:
                continue
            begin, end, size = found
            if begin == end:
                self._remember(self.recent, len(data), (size, data[:size], template.headers), size)
                return template.headers, None, data[size:], None
            credentials = data[begin:end]
            if _CREDENTIALS.fullmatch(credentials):
                kept = (begin, data[:begin], end, data[end:size], size, template.headers)
                self._remember(self._protected, len(data), kept, size)
                return template.headers, credentials, data[size:], None
        return None

    def learn(self, head: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Make a template of a head that the parser has accepted, if the checks of its headers accept it, too."""
        if self._learned >= _MAX_LEARNED or head.find(b"\r\n\r\n") != len(head) - 4:
            return
        template = make_template(head, headers)
        if template is not None and self._accepts(template.headers):
            self._learned += 1
            self._templates = (template, *self._templates[: _MAX_TEMPLATES - 1])

    @staticmethod
    def _remember(heads: dict[int, _T], request_size: int, head: _T, size: int) -> None:
        if size <= _MAX_RECENT_BYTES:
            if len(heads) >= _MAX_RECENT:
                heads.clear()
            heads[request_size] = head
