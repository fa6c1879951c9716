"""A reader of text files."""

import os
import stat
from typing import Final

from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.tally import SkipReason

_EXAMINED_BYTES: Final = 8192
_CHUNK_BYTES: Final = 64 * 1024


class FileReader:
    """Reads text files up to a maximum size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def read(self, directory: Directory, name: str) -> bytes | SkipReason:
        """Return the content of a file in the directory, or the reason why it is skipped."""
        descriptor = directory.open_file(name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return SkipReason.SPECIAL
            if status.st_size > self._max_bytes:
                return SkipReason.TOO_LARGE
            # In procfs and some other file systems, files have the size 0 and a content anyway.
            begin = os.read(descriptor, status.st_size or _CHUNK_BYTES)
            data = _rest(descriptor, begin, status.st_size or self._max_bytes + 1)
        finally:
            os.close(descriptor)
        if len(data) > self._max_bytes:
            return SkipReason.TOO_LARGE
        # Like git and grep, treat a file with zero bytes as binary.
        return SkipReason.BINARY if data.find(b"\0", 0, _EXAMINED_BYTES) >= 0 else data


def _rest(descriptor: int, data: bytes, size: int) -> bytes:
    """Read on up to `size` bytes. Some file systems return fewer bytes than requested, so one read is not enough."""
    while 0 < len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data
