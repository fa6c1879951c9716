"""Records on the standard error stream, for what collects that."""

import os
from typing import Final

from axolotl_core.audit import AuditRecord, IAuditSink
from axolotl_server.audit.encoding import encode_record

__all__ = ["StderrSink"]

_STDERR: Final = 2


class StderrSink(IAuditSink):
    """Writes one line a record. There is no chain: nobody knows where the one before has gone."""

    def write(self, record: AuditRecord) -> None:
        """Write a line.

        Raises:
            OSError: if the stream is closed or full.
        """
        line = encode_record(record) + b"\n"
        while line:
            line = line[os.write(_STDERR, line) :]

    def __str__(self) -> str:
        return "The standard error stream"
