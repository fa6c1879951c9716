"""The law of bounds: whatever a client sends or causes has a limit, and a test that keeps it."""

import re
from collections import Counter
from pathlib import Path

from tests.support.docs.bounds import NOT_BOUNDS, OVERRIDES, all_bounds
from tests.support.docs.settings_reference import all_settings
from tests.support.docs.wire_fields import ENCLOSING, growing_fields

_ROOT = Path(__file__).resolve().parents[2]
_REGISTRY = "tests/support/docs/bounds.toml"
_NUMERIC = re.compile(r"\b(integer|number)\b")


def test_numeric_settings_are_bounds() -> None:
    """Every numeric setting has a row in the table of bounds, or a reason why it is not one."""
    numeric = {one.name for one in all_settings() if _NUMERIC.search(one.kind)}
    rows = {bound.limit for bound in all_bounds() if bound.is_setting}
    missing = {name for name in numeric - rows - set(NOT_BOUNDS) if not name.startswith(OVERRIDES)}
    assert not missing, f"add a row to {_REGISTRY}, or a reason to NOT_BOUNDS in bounds.py, for {sorted(missing)}"
    stale = (rows | set(NOT_BOUNDS)) - numeric
    assert not stale, f"{_REGISTRY} has settings that do not exist: {sorted(stale)}"
    assert rows.isdisjoint(NOT_BOUNDS)


def test_overrides_have_a_limit_that_they_replace() -> None:
    """A numeric setting of a tool or tool set is the one of all calls, so that its bound is known."""
    numeric = [one.name for one in all_settings() if _NUMERIC.search(one.kind) and one.name.startswith(OVERRIDES)]
    rows = {bound.limit for bound in all_bounds()}
    assert {f"limits.{name.rpartition('.')[2]}" for name in numeric} <= rows


def test_wire_fields_are_bounded() -> None:
    """Every field of a message from a client has a maximum length, or the bound that encloses it is named."""
    listed = Counter(name for names in ENCLOSING.values() for name in names)
    assert max(listed.values()) == 1
    fields = growing_fields()
    missing = {name: kind for name, kind in fields.items() if name not in listed}
    advice = "give it a max_length, or add it to ENCLOSING in tests/support/docs/wire_fields.py"
    assert not missing, f"a client can send {missing} at any length: {advice}"
    assert set(listed) <= set(fields), f"these fields have a length now: {sorted(set(listed) - set(fields))}"
    assert set(ENCLOSING) <= {bound.limit for bound in all_bounds()}


def test_known_fields_are_found() -> None:
    """The search for the fields of messages finds those in the head, in parameters and in nested objects."""
    assert {"Params.arguments", "ListParams.cursor", "InitializeParams.capabilities", "Icon.src"} <= set(
        growing_fields()
    )
    assert "Head.method" not in growing_fields()


def test_bounds_have_tests() -> None:
    """The test of every bound exists."""
    missing = []
    for bound in all_bounds():
        file, _, name = bound.test.partition("::")
        path = _ROOT / file
        if not path.is_file() or (name and not re.search(rf"def {name}\(", path.read_text(encoding="utf-8"))):
            missing.append(bound.test)
    assert not missing, f"{_REGISTRY} names tests that do not exist: {missing}"


def test_bounds_are_listed_once() -> None:
    """There is one row per bound, and every default can be read from the code."""
    listed = Counter((bound.limit, bound.what) for bound in all_bounds())
    assert [limit for limit, count in listed.items() if count > 1] == []
    assert all(bound.default for bound in all_bounds())
