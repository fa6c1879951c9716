"""The audit port, and canonical JSON."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from axolotl_core.policies.audit import AuditRecord, IAuditSink, Sensitive
from axolotl_core.protocol.wire import canonical_json
from tests.support.core.json_values import JSON


def shuffled(value: Any) -> Any:
    """Turn the order of all keys around."""
    if isinstance(value, dict):
        return {key: shuffled(inner) for key, inner in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_equal_json_has_equal_canonical_form(value: Any) -> None:
    """Whitespace, escapes and the order of keys do not matter."""
    plain = json.dumps(value, ensure_ascii=False).encode()
    odd = json.dumps(shuffled(value), indent=3, ensure_ascii=True).encode()
    assert canonical_json(plain) == canonical_json(odd)
    assert json.loads(canonical_json(plain)) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [(b"1", b"1.0"), (b"1.0", b"1.00"), (b"1e2", b"100"), (b"0.1", b"0.10000000000000001"), (b"[1]", b"1")],
)
def test_different_numbers_differ(one: bytes, other: bytes) -> None:
    """Numbers that are equal only as floats are distinguished."""
    assert canonical_json(one) != canonical_json(other)


@given(st.binary(max_size=50))
def test_whatever_comes_has_a_form(raw: bytes) -> None:
    """Bytes that are not JSON stay unchanged, and canonical JSON is idempotent."""
    form = canonical_json(raw)
    assert canonical_json(form) == form


def test_deep_nesting_is_harmless() -> None:
    """JSON that is nested too deeply stays unchanged."""
    raw = b"[" * 100_000
    assert canonical_json(raw) == raw


def test_the_mark_is_published_for_input_only() -> None:
    """A sensitive field is `writeOnly` in schemas for validation, and otherwise like any other field."""

    class Marked(BaseModel):
        password: Annotated[str, Sensitive]
        pin: Annotated[int, Sensitive()]

    class Plain(BaseModel):
        password: str
        pin: int

    marked, plain = Marked.model_json_schema(), Plain.model_json_schema()
    assert [field.pop("writeOnly") for field in marked["properties"].values()] == [True, True]
    assert {**marked, "title": "Plain"} == plain
    written = Marked.model_json_schema(mode="serialization")
    assert {**written, "title": "Plain"} == Plain.model_json_schema(mode="serialization")
    assert Marked(password="a", pin=1).password == "a"


def test_a_sink_needs_one_method() -> None:
    """A sink must only implement `write`."""

    class Counting(IAuditSink):
        count = 0

        def write(self, record: AuditRecord) -> None:
            self.count += 1

    sink = Counting()
    sink.open()
    sink.write(AuditRecord(time="2026-11-16T00:00:00.000000Z", event="gap", lost=1))
    sink.close()
    assert sink.flush(1.0)
    assert sink.count == 1
