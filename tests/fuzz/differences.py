"""Messages that get different verdicts over HTTP and stdio, as documented."""

from typing import Final

from tests.fuzz.corpus import STATE, STATELESS, TASK
from tests.fuzz.judging import Verdict
from tests.fuzz.probes import Probe

_HEADER_MISMATCH: Final = ("error", -32020)
_INVALID: Final = ("error", -32602)
_PARSE_ERROR: Final = ("error", -32700)
_NOTHING: Final = ("nothing",)


def is_documented(probe: Probe, http: Verdict, stdio: Verdict) -> bool:
    """Return whether the difference is one that the transports have by design."""
    if TASK.encode() in probe.body or STATE.encode() in probe.body:
        return True  # each server gave out values of its own, at its own time
    if http == _HEADER_MISMATCH:
        return probe.revision == STATELESS  # there are no headers on stdio
    if stdio[-1] == "task" and http == _INVALID:
        return True  # headers repeat arguments, so that a number out of range is found before the task begins
    if b'"ping"' in probe.body and probe.revision == STATELESS:
        return True  # before a handshake, ping is answered on stdio only
    if not probe.body.strip():
        return (http, stdio) == (_PARSE_ERROR, _NOTHING)  # an empty line separates messages
    return False
