"""Trace contexts: valid and ignored values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.protocol.messages import TraceContext, read_trace

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PLAIN = f"00-{TRACE}-{PARENT}-01"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_a_trace_is_read() -> None:
    """The three values are kept, and the IDs are available."""
    trace = read_trace(PLAIN, "rojo=1,congo=2", "user=5")
    assert trace == TraceContext(PLAIN, "rojo=1,congo=2", "user=5")
    assert (trace.trace_id, trace.parent_id) == (TRACE, PARENT)


def test_state_and_baggage_may_be_missing() -> None:
    """The parent alone is a trace."""
    assert read_trace(PLAIN, None, None) == TraceContext(PLAIN)


@pytest.mark.parametrize(
    "traceparent",
    [
        pytest.param(None, id="none"),
        pytest.param(5, id="number"),
        pytest.param("", id="empty"),
        pytest.param(PLAIN.upper(), id="capitals"),
        pytest.param(f"ff-{TRACE}-{PARENT}-01", id="forbidden-version"),
        pytest.param(f"00-{'0' * 32}-{PARENT}-01", id="zero-trace"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="zero-parent"),
        pytest.param(f"00-{TRACE[1:]}-{PARENT}-01", id="short-trace"),
        pytest.param(f"00-{TRACE}-{PARENT}", id="no-flags"),
        pytest.param(f" {PLAIN}", id="space"),
        pytest.param(f"{PLAIN}\n", id="line-end"),
        pytest.param(f"{PLAIN}x", id="more"),
        pytest.param(f"01-{TRACE}-{PARENT}-01-{'x' * 9000}", id="endless"),
    ],
)
def test_a_malformed_traceparent_is_ignored(traceparent: Any) -> None:
    """Without a valid traceparent, there is no trace."""
    assert read_trace(traceparent, "a=1", "b=2") is None


def test_future_versions_may_have_more_fields() -> None:
    """Fields of future versions are kept."""
    trace = read_trace(f"cc-{TRACE}-{PARENT}-01-what-comes", None, None)
    assert trace is not None
    assert (trace.trace_id, trace.parent_id) == (TRACE, PARENT)


@pytest.mark.parametrize("text", ["", "a\nb", "a\x00", "x" * 8193, 5, ["a=1"]])
def test_malformed_state_and_baggage_are_left_out(text: Any) -> None:
    """Invalid values are ignored; the trace is kept."""
    assert read_trace(PLAIN, text, text) == TraceContext(PLAIN)


@given(json_values, json_values, json_values)
def test_whatever_a_request_carries_is_read_or_left_out(traceparent: Any, tracestate: Any, baggage: Any) -> None:
    """No value raises an error."""
    trace = read_trace(traceparent, tracestate, baggage)
    assert trace is None or trace.traceparent == traceparent
    kept = read_trace(PLAIN, tracestate, baggage)
    assert kept is not None
    assert kept.tracestate in (None, tracestate)
    assert kept.baggage in (None, baggage)
