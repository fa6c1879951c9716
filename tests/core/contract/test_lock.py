"""The lock: its stable form, reading it, and what it refuses."""

import json
import time
from typing import Any

import pytest

from axolotl_core.contract.changes import Impact
from axolotl_core.contract.lock import MAX_LOCK_BYTES, Lock, Terms, make_lock, read_lock
from axolotl_core.contract.lock_diff import compare_locks
from axolotl_core.errors import ConfigurationError

TERMS = Terms({"timeout_seconds": 30.0}, {"b", "a"}, None)


def lock(**schema: Any) -> Lock:
    definition = {"name": "größe", "description": "Measure.", "inputSchema": {"type": "object", **schema}}
    return make_lock([(definition, TERMS)], [({"name": "apology"}, TERMS)], [({"name": "r", "uri": "a://b"}, TERMS)])


def test_a_lock_is_read_as_it_was_written() -> None:
    """Text and digest are the same after reading; keys are sorted, and the file ends with a line break."""
    text = lock(properties={"b": {}, "a": {}}).text
    assert read_lock(text, "the file").text == text
    assert text == lock(properties={"a": {}, "b": {}}).text
    assert text.endswith("}\n")
    assert '"größe"' in text
    assert json.loads(text)["tools"]["größe"]["scopes"] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not a lock file: Input data was truncated"),
        ("[]", "is not a lock file: Expected `object`"),
        ('{"format": 2}', "has the format 2, but this version of Axolotl reads format 1"),
        ("{}", "was changed after it was written"),
        ("<<<<<<< HEAD\n{}", "is not a lock file"),
        ("[" * 100_000, "is not a lock file"),
        (lock().text.replace("Measure.", "Count."), "was changed after it was written"),
        (lock().text.replace('"format"', '"more": 1, "format"'), "was changed after it was written"),
    ],
)
def test_what_is_not_a_lock_is_refused(text: str, problem: str) -> None:
    """The error says what is wrong and what to do."""
    with pytest.raises(ConfigurationError, match=r"axolotl\.lock\.json") as caught:
        read_lock(text, "axolotl.lock.json")
    assert problem in str(caught.value)
    assert "axolotl contract freeze" in str(caught.value)


def test_a_lock_has_a_limited_size() -> None:
    """A file that is too large is not parsed."""
    with pytest.raises(ConfigurationError, match=f"larger than {MAX_LOCK_BYTES} bytes"):
        read_lock(b" " * (MAX_LOCK_BYTES + 1), "axolotl.lock.json")


@pytest.mark.parametrize("reference", ["https://example.com/order.json", "order.json#/$defs/Order"])
def test_a_reference_to_another_document_is_refused(reference: str) -> None:
    """What it refers to can change without notice. Data that looks like a reference is not one."""
    with pytest.raises(ConfigurationError) as caught:
        lock(properties={"order": {"anyOf": [{"$ref": reference}]}})
    assert f"the input schema refers to {reference}" in str(caught.value)
    assert "größe" in lock(properties={"order": {"const": {"$ref": reference}}}).tools


def test_selected_tool_sets() -> None:
    """Features of other tool sets are left out; nested sets and features outside of any set stay."""
    names = {"read": "read", "orders": "read.orders", "reader": "reader", "none": None}
    made = make_lock(
        (({"name": name, "inputSchema": {}}, Terms({}, (), toolset)) for name, toolset in names.items()), (), ()
    )
    assert made.select(()) is made
    assert sorted(made.select(["read"]).tools) == ["none", "orders", "read"]


def definition_of(index: int, minimum: int) -> dict[str, Any]:
    """Describe a tool with schemas of about 4 KB."""
    text = "The number of something, which is described in a sentence of a usual length."
    number = {"type": "integer", "minimum": 0, "description": text}
    properties = {**{f"p{n}": number for n in range(9)}, "last": {**number, "minimum": minimum}}
    part = {"type": "object", "properties": properties, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/Part"}, "more": {"type": "array", "items": {"$ref": "#/$defs/Part"}}},
        "$defs": {"Part": part},
    }
    name = f"tool_{index}"
    return {"name": name, "description": text, "inputSchema": schema, "outputSchema": schema}


def test_a_contract_of_300_tools_takes_less_than_a_second() -> None:
    """All inputs and outputs change, so that each is walked and proven. The usual time is a third of the limit."""
    begin = time.process_time()
    old, new = (
        make_lock(((definition_of(index, minimum), TERMS) for index in range(300)), (), ()) for minimum in (0, 1)
    )
    size = len(old.text) / 300
    changes = compare_locks(read_lock(old.text, "old"), new)
    seconds = time.process_time() - begin
    assert size > 4000
    assert sum(change.impact is Impact.BREAKING for change in changes) == 300 * 2
    assert seconds < 3, "the target is one second on a quiet machine"
