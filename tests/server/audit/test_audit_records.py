"""Records of calls that are encoded from JSON that is ready: they equal the records that sinks of the container get."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from axolotl_core import Limits, Principal, ToolCall, ToolSpec
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.records import AuditCallRecord, CallDescription, describer, encode_record
from axolotl_server.audit.redaction import nothing_shown, redactor
from axolotl_server.layers.call_ending import DONE, Ending
from tests.support.tools import Echo

ODD = 'ada "x" \\ \u2028 \x7f \x85 é \ud800'


LIMITS = Limits(timeout_seconds=30.0, max_concurrency=None, execution="loop", coerce_arguments=False)
SPEC = ToolSpec.of(Echo(), LIMITS, "a toolset")


class NoTask:
    """Runs no call."""

    def cancel(self) -> None: ...


def described(principal: Principal, show: Callable[[Any], Any] = nothing_shown) -> CallDescription:
    """Describe a call of a principal."""
    raw = msgspec.json.encode({"text": "\u2028 é"})
    call = ToolCall(1, principal=principal, spec=SPEC, raw=raw, task=NoTask(), arguments="valid")
    return describer(Hashing(None), show)(SPEC)(call)


def records_of(description: CallDescription) -> list[AuditCallRecord]:
    """Make the records of a call that ended in several ways."""
    endings = [DONE, Ending("failed", f"module.{ODD}"), Ending("denied", "no", ODD), Ending("timeout", "timeout")]
    return [
        description.started("0123456789abcdef"),
        *(description.ended("0123456789abcdef", one, 1_234_567, 0.0) for one in endings),
        *(description.ended("0123456789abcdef", DONE, took, queued) for took, queued in DURATIONS),
    ]


DURATIONS = [(0, 0.0), (999, 0.000001), (57_123, 12.3456789), (86_400_000_000_123, 1e-9)]


@pytest.mark.parametrize("show", [nothing_shown, redactor])
@pytest.mark.parametrize(
    "principal",
    [
        Principal("anonymous"),
        Principal("ada", "acme", issuer="https://issuer.example"),
        Principal(ODD, ODD, issuer=ODD),
    ],
    ids=["anonymous", "known", "odd"],
)
def test_the_quick_form_is_the_plain_form(principal: Principal, show: Callable[[Any], Any]) -> None:
    """The line of a call has the same bytes whether it is encoded from ready texts or from the fields of its record."""
    description = described(principal, show)
    for one in (description, description.of_task("a task"), description.of_task(ODD, 3)):
        for record in records_of(one):
            assert encode_record(record) == encode_record(record.plain())
            assert b"\x7f" not in encode_record(record)


def test_callers_do_not_share_their_texts() -> None:
    """Each record names its own caller, however many there are."""
    describe = describer(Hashing(None), nothing_shown)(SPEC)
    for _ in range(2):
        for number in range(300):
            principal = Principal(f"user {number}", f"tenant {number % 7}", issuer=f"issuer {number % 3}")
            call = ToolCall(1, principal=principal, spec=SPEC, raw=b"{}", task=NoTask())
            line = msgspec.json.decode(encode_record(describe(call).started("id")))
            assert (line["subject"], line["tenant"], line["issuer"]) == (
                principal.subject,
                principal.tenant,
                principal.issuer,
            )


def test_the_time_is_the_same_in_both_forms() -> None:
    """The time of a record is the moment when it was made, also if the second has changed since."""
    description = described(Principal("ada"))
    for nanoseconds in (1_000_000_000_000_000_000, 1_794_966_000_000_001_999, 1_794_966_000_999_999_999):
        record = AuditCallRecord(nanoseconds, "start", "id", description)
        line = msgspec.json.decode(encode_record(record))
        assert line["time"] == record.plain().time
    assert line["time"] == "2026-11-18T01:40:00.999999Z"
