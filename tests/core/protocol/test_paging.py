"""Cursors: opaque and exact."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.wire import decode_cursor, encode_cursor

kinds = st.sampled_from(["tools", "prompts", "resources", "resources/templates"])


def forged(text: str) -> str:
    """Encode a text as cursors are."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@given(kinds, st.integers(0, 2**70))
def test_a_cursor_comes_back_as_its_position(kind: str, position: int) -> None:
    """A cursor is decoded for the list that it was encoded for."""
    assert decode_cursor(kind, encode_cursor(kind, position)) == position


@given(kinds, kinds, st.integers(0, 10**6))
def test_a_cursor_of_another_list_is_refused(made_for: str, used_for: str, position: int) -> None:
    """A cursor is valid only for its own list."""
    if made_for != used_for:
        with pytest.raises(InvalidParams):
            decode_cursor(used_for, encode_cursor(made_for, position))


@given(kinds, st.text(max_size=30))
def test_any_text_is_refused_or_is_a_cursor_of_ours(kind: str, text: str) -> None:
    """Any other text raises InvalidParams; only the canonical form is accepted."""
    try:
        position = decode_cursor(kind, text)
    except InvalidParams:
        return
    assert encode_cursor(kind, position) == text


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("", id="empty"),
        pytest.param("5", id="bare-number"),
        pytest.param("tools:5", id="not-encoded"),
        pytest.param(forged("tools"), id="no-position"),
        pytest.param(forged("tools:"), id="empty-position"),
        pytest.param(forged("5"), id="no-list"),
        pytest.param(forged(":5"), id="empty-list"),
        pytest.param(forged("Tools:5"), id="other-case"),
        pytest.param(forged("tools:-1"), id="negative"),
        pytest.param(forged("tools:+1"), id="plus"),
        pytest.param(forged("tools:01"), id="leading-zero"),
        pytest.param(forged("tools: 1"), id="space"),
        pytest.param(forged("tools:1_0"), id="underscore"),
        pytest.param(forged("tools:1.5"), id="fraction"),
        pytest.param(forged("tools:٣"), id="other-digits"),
        pytest.param(forged("tools:" + "9" * 5000), id="more-digits-than-python-converts"),
        pytest.param(encode_cursor("tools", 5) + "=", id="padded"),
        pytest.param(encode_cursor("tools", 5) + "\n", id="line-break"),
        pytest.param(encode_cursor("tools", 5) + "A", id="longer"),
        pytest.param(encode_cursor("tools", 5)[:-1], id="shorter"),
        pytest.param("*" * 12, id="no-base64"),
        pytest.param("ключ", id="not-ascii"),
    ],
)
def test_a_forged_cursor_is_refused(cursor: str) -> None:
    """An invalid cursor is refused with a text that says what to do."""
    with pytest.raises(InvalidParams, match="Invalid cursor for tools/list: leave it out"):
        decode_cursor("tools", cursor)
