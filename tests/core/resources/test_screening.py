"""Path traversal is detected in all encodings, without false positives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.resources.resource import screen


def encoded(text: str, times: int) -> str:
    """Percent-encode every character, again and again."""
    for _ in range(times):
        text = "".join(f"%{byte:02x}" for byte in text.encode())
    return text


LEADING_OUT = [
    pytest.param("..", id="up"),
    pytest.param(".", id="here"),
    pytest.param("../secret", id="up-first"),
    pytest.param("a/../../secret", id="up-between"),
    pytest.param("a/..", id="up-last"),
    pytest.param("a/./b", id="here-between"),
    pytest.param("a\\..\\b", id="up-with-backslashes"),
    pytest.param("a\\b", id="backslash"),
    pytest.param("/etc/passwd", id="absolute"),
    pytest.param("//host/share", id="network"),
    pytest.param("\\\\host\\share", id="network-with-backslashes"),
    pytest.param("C:\\Windows", id="drive"),
    pytest.param("c:/windows", id="drive-with-slashes"),
    pytest.param("d:secret", id="drive-alone"),
    pytest.param("a\0.txt", id="nul"),
    pytest.param("a\nb", id="line-break"),
    pytest.param("a\x7f", id="delete"),
    pytest.param("a\x85b", id="later-control"),
]


@pytest.mark.parametrize("times", [0, 1, 2, 3])
@pytest.mark.parametrize("value", LEADING_OUT)
def test_traversal_is_detected(value: str, times: int) -> None:
    """Path traversal is detected, also if it is encoded up to three times."""
    assert screen({"fine": "a", "path": encoded(value, times)}, ()) == "path"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("%2e%2e", id="dots"),
        pytest.param("%252E%252e", id="dots-again"),
        pytest.param("..%2fsecret", id="slash"),
        pytest.param("..%255csecret", id="backslash-again"),
        pytest.param("%2Fetc", id="leading-slash"),
        pytest.param("C%3A/", id="colon"),
        pytest.param("a%00", id="nul"),
        pytest.param(".%2e/x", id="half-encoded"),
        pytest.param("%25252525252e", id="deeper-than-is-looked"),
    ],
)
def test_partly_encoded_values_are_found(value: str) -> None:
    """Partial encoding does not hide path traversal; deeper encoding is rejected."""
    assert screen({"path": value}, ()) == "path"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("a/b/c.txt", id="path"),
        pytest.param("a..b", id="dots-within"),
        pytest.param("...", id="three-dots"),
        pytest.param("..a/.b/c.", id="dotted-names"),
        pytest.param("a//b/", id="empty-segments"),
        pytest.param("https://example.com/x?y=z", id="address"),
        pytest.param("12:30", id="time"),
        pytest.param("100%", id="percent"),
        pytest.param("50%25 off", id="encoded-percent"),
        pytest.param("a%252520b", id="encoded-thrice"),
        pytest.param("Übung/日本 🦎", id="not-ascii"),
        pytest.param([], id="no-parts"),
        pytest.param([""], id="empty-part"),
        pytest.param(["a", "b.txt"], id="parts"),
        pytest.param(["a", "", "b"], id="empty-part-between"),
    ],
)
def test_harmless_values_are_accepted(value: str | list[str]) -> None:
    """Dots in names, addresses and percent signs are accepted."""
    assert screen({"path": value}, ()) is None


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(["a", "..", "b"], id="up"),
        pytest.param(["a", "b/../.."], id="up-within-a-part"),
        pytest.param(["a", "/etc"], id="absolute-part"),
        pytest.param(["a", "C:"], id="drive"),
        pytest.param(["", "etc", "passwd"], id="absolute-when-joined"),
        pytest.param(["a", "%2e%2e"], id="encoded"),
    ],
)
def test_lists_are_looked_at_part_by_part_and_joined(parts: list[str]) -> None:
    """A list is rejected if one item or the joined items are path traversal."""
    assert screen({"path": parts}, ()) == "path"


def test_the_first_one_is_named_and_unscreened_ones_are_skipped() -> None:
    """Unscreened variables are ignored; of the others, the first is returned."""
    values = {"a": "..", "b": "/x", "c": ["."]}
    assert screen(values, ()) == "a"
    assert screen(values, {"a"}) == "b"
    assert screen(values, frozenset({"a", "b"})) == "c"
    assert screen(values, ["c", "b", "a"]) is None
    assert screen({}, ()) is None


@given(st.text(), st.integers(0, 3))
def test_a_way_up_is_found_behind_any_text(text: str, times: int) -> None:
    """A preceding text does not hide `..`."""
    assert screen({"path": text + encoded("/../", times)}, ()) == "path"
