"""Shifts the clock of a process by the number of seconds in a file; Python imports this module when it starts."""

import mmap
import os
import struct
import time

_real_time, _real_time_ns = time.time, time.time_ns

if "CHAOS_CLOCK" in os.environ:
    _descriptor = os.open(os.environ["CHAOS_CLOCK"], os.O_RDONLY)
    _shift = mmap.mmap(_descriptor, 8, prot=mmap.PROT_READ)
    os.close(_descriptor)

    def _seconds() -> float:
        return float(struct.unpack("d", _shift[:8])[0])

    def _time() -> float:
        return _real_time() + _seconds()

    def _time_ns() -> int:
        return _real_time_ns() + int(_seconds() * 1e9)

    time.time, time.time_ns = _time, _time_ns
