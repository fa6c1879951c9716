"""CPU time and memory of a process and its descendants (Linux)."""

import os
import time
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_REAPED_FIELDS = slice(13, 15)  # cutime and cstime, counted after the parenthesised command name


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process, its living children and those it has reaped."""
    return _own_seconds(pid) + _reaped_seconds(pid) + sum(cpu_seconds(child) for child in _children(pid))


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its living children."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * _PAGE_BYTES + sum(resident_bytes(child) for child in _children(pid))


def _own_seconds(pid: int) -> float:
    # The clock id of clock_getcpuclockid(3), which counts nanoseconds; /proc/<pid>/stat counts hundredths of a second.
    return time.clock_gettime((~pid << 3) | 2)


def _reaped_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_REAPED_FIELDS]) / _TICKS_PER_SECOND


def _children(pid: int) -> list[int]:
    listings = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listing in listings for child in listing.read_text().split()]
