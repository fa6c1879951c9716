"""The limit of nesting: exact, unaffected by strings, and cheap."""

import json
import tracemalloc
from contextlib import suppress
from time import perf_counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from axolotl_core import InvalidArguments
from axolotl_core.errors import ParseError
from axolotl_core.protocol.json_limits import MAX_DEPTH, check_limits
from axolotl_core.protocol.messages import diagnose, read_head
from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.core.sample_tools import read_bytes

ENVELOPE = 2  # the message and its params
PADDING = "x" * 1024  # a smaller message may go unmeasured: it cannot be deep enough to do harm


def message(arguments: str) -> bytes:
    """Put arguments into a request."""
    return f'{{"jsonrpc":"2.0","id":1,"method":"m","pad":"{PADDING}","params":{{"arguments":{arguments}}}}}'.encode()


def nested(opening: str, closing: str, levels: int) -> str:
    """Write a value of some depth."""
    return opening * levels + "1" + closing * levels


def depth_of(value: Any) -> int:
    """Count levels recursively."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize(
    ("opening", "closing", "levels_each"),
    [
        pytest.param("[", "]", 1, id="arrays"),
        pytest.param('{"a":', "}", 1, id="objects"),
        pytest.param('[{"a":', "}]", 2, id="arrays-of-objects"),
        pytest.param('{"a":[', "]}", 2, id="objects-of-arrays"),
    ],
)
def test_the_limit_is_exact(opening: str, closing: str, levels_each: int) -> None:
    """The maximum depth is accepted; one more level is refused."""
    deepest = nested(opening, closing, (MAX_DEPTH - ENVELOPE) // levels_each)
    assert read_head(message(deepest)).method == "m"
    for deeper in (f"[{deepest}]", f'{{"a":{deepest}}}'):
        with pytest.raises(ParseError, match="nested more than 64 levels deep"):
            read_head(message(deeper))


def test_the_limit_applies_to_all_shapes() -> None:
    """The depth of batches and other shapes is checked, too."""
    assert diagnose(nested("[", "]", MAX_DEPTH).encode()) is not None
    with pytest.raises(ParseError, match="nested more than 64 levels deep"):
        diagnose(nested("[", "]", MAX_DEPTH + 1).encode())


def test_the_depth_of_unread_fields_counts() -> None:
    """The depth of skipped fields is checked, too."""
    deep = nested("[", "]", MAX_DEPTH)
    with pytest.raises(ParseError, match="nested more"):
        read_head(f'{{"jsonrpc":"2.0","id":1,"method":"m","pad":"{PADDING}","x":{deep}}}'.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 200, id="opening"),
        pytest.param("]" * 200, id="closing"),
        pytest.param('"[{' * 100, id="after-escaped-quotes"),
        pytest.param('\\"[' * 100, id="after-escaped-backslashes"),
        pytest.param("\\[" * 100, id="after-backslashes"),
    ],
)
def test_brackets_in_strings_do_not_count(text: str) -> None:
    """Text may hold any number of brackets, quotes and backslashes, as a value and as a key."""
    assert read_head(message(json.dumps({"a": text, text: 1}))).method == "m"


def test_a_string_may_end_in_a_backslash() -> None:
    """An escaped backslash before a closing quote does not hide that quote."""
    shallow = {"a": "\\", "b": "[" * 200, "c\\": "]" * 200}
    assert read_head(message(json.dumps(shallow))).method == "m"
    with pytest.raises(ParseError, match="nested more"):
        read_head(message(f'["\\\\",{nested("[", "]", MAX_DEPTH)},"\\\\"]'))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    """Only depth counts, not width."""
    deepest = nested("[", "]", MAX_DEPTH - ENVELOPE - 1)
    assert read_head(message(json.dumps([[], {}] * 1000))).method == "m"
    assert read_head(message(f"[[],{deepest},{{}},{deepest}]")).method == "m"


@pytest.mark.parametrize("levels", [1_000, 20_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [pytest.param("[", "]", id="arrays"), pytest.param('{"a":', "}", id="objects")]
)
def test_bottomless_messages_are_refused_not_crashed_on(opening: str, closing: str, levels: int) -> None:
    """Deep nesting exhausts no stack."""
    with pytest.raises(ParseError, match="nested more"):
        read_head(message(nested(opening, closing, levels)))
    with pytest.raises(ParseError, match="nested more"):
        diagnose(nested(opening, closing, levels).encode())


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('["' + "x" * 4_000_000 + '"' + ",[]" * 100 + "]", id="long-string"),
        pytest.param('["' + '\\"' * 2_000_000 + '"' + ",[]" * 100 + "]", id="escapes"),
        pytest.param("[" + ",".join(['""'] * 1_300_000) + ",[]" * 100 + "]", id="many-strings"),
        pytest.param("[" + ",".join(["[]"] * 1_300_000) + "]", id="many-brackets"),
    ],
)
def test_measuring_a_large_message_is_cheap(arguments: str) -> None:
    """The check of the largest message takes little time and memory."""
    data = message(arguments)
    started = perf_counter()
    check_limits(data, max_values=len(data))
    assert perf_counter() - started < 10
    tracemalloc.start()
    try:
        check_limits(data, max_values=len(data))
        assert tracemalloc.get_traced_memory()[1] < 40 * len(data)
    finally:
        tracemalloc.stop()


texts = st.text(alphabet='[]{}"\\,:a\n', max_size=8)
scalars = st.none() | st.booleans() | st.integers() | texts
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8)
patterns = st.text(alphabet="[{", min_size=1, max_size=5)
levels = st.integers(0, 4) | st.integers(MAX_DEPTH - 6, MAX_DEPTH + 3)


@given(values, values, texts, patterns, levels)
@example([], 1, "", "[{", MAX_DEPTH)
@example(1, 1, "", "{[", MAX_DEPTH)
def test_the_limit_agrees_with_a_plain_count(core: Any, sibling: Any, key: str, pattern: str, around: int) -> None:
    """For any JSON, a message is refused exactly if a plain recursive count finds more than the limit."""
    value = core
    for bracket in (pattern * around)[:around]:
        value = [sibling, value] if bracket == "[" else {key: value, key + "x": sibling}
    data = json.dumps(value).encode()
    if depth_of(value) <= MAX_DEPTH:
        assert diagnose(data) == (value, None)
    else:
        with pytest.raises(ParseError, match="nested more"):
            diagnose(data)


@pytest.mark.parametrize(
    ("opening", "closing"), [pytest.param("[", "]", id="arrays"), pytest.param('{"":', "}", id="objects")]
)
def test_the_deepest_small_message_harms_no_parser(opening: str, closing: str) -> None:
    """Small messages with deep nesting are read or refused, by the envelope and by validators."""
    deepest = nested(opening, closing, 940 // len(opening + closing))
    small = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"arguments":{{"a":{deepest}}}}}}}'.encode()
    assert len(small) <= 1024
    with suppress(ParseError, InvalidArguments):
        raw = read_head(small).params.arguments
        assert raw is not UNSET
        read_bytes(SchemaTool("t", {}, dict), bytes(raw))
