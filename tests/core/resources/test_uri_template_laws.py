"""URI templates: properties for all values and URIs, including hostile ones."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from axolotl_core.resources.uri_form import canonical_uri, uri_key
from axolotl_core.resources.uri_template import UriTemplate
from tests.support.core.uri_expansion import expand

texts = st.text(max_size=40)
several = st.lists(st.text(max_size=20), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("template", "required", "optional"),
    [
        pytest.param("r://{a}/x/{b}", {"a": texts, "b": texts}, {}, id="simple"),
        pytest.param("r://{a}{/b}/x{/c*}", {"a": texts}, {"b": texts, "c": several}, id="path"),
        pytest.param("r://x{?a,b,c*}{#d}", {}, {"a": texts, "b": texts, "c": several}, id="query"),
        pytest.param("r://x?y=1{&a,b*}", {}, {"a": texts, "b": several}, id="continued-query"),
        pytest.param("r://{a}{;b,c*}/{d}", {"a": texts, "d": texts}, {"b": texts, "c": several}, id="parameters"),
        pytest.param("r://{a,b}/{c*}", {"a": texts, "b": texts, "c": several.filter(any)}, {}, id="commas"),
        pytest.param("r://{a,b*}/x", {"a": texts, "b": several}, {}, id="text-and-list"),
        pytest.param("r://x{.a}/y", {}, {"a": texts}, id="label"),
        pytest.param("r://{a:4}/x", {"a": st.text(max_size=4)}, {}, id="prefix"),
    ],
)
@given(data=st.data())
def test_values_come_back(
    template: str, required: dict[str, Any], optional: dict[str, Any], data: st.DataObject
) -> None:
    """The values of an expansion are found again."""
    values = data.draw(st.fixed_dictionaries(required, optional=optional))
    subject = UriTemplate(template)
    assert subject.match(expand(subject, values)) == values


TEMPLATES = [
    UriTemplate(f"r:{rest}")
    for rest in [
        "{a}", "{a}/{b}", "{a}.{b}", "{a}{b}{c}", "{a,b*}", "{a*}", "{.a,b}{.c*}", "{/a,b}/x{/c*}", "{a}{.b}{/c}",
        "x{?a,b*}", "x{;a,b*}{/c}", "{a:2}{/b:3}", "?x{&a}{&b}", "{a}x{b}{?c}",
    ]
]  # fmt: skip
WIDE = [UriTemplate(f"r:{rest}") for rest in ["{+a}", "{+a}{?b}{#c}", "{+a,b}/{c}", "{#a,b*}", "{+a*}{b}.{+c}"]]

near = st.text(st.sampled_from("abcx/?#&=;,.%2eEfF+~-é \\{\0\ud800"), max_size=24)
anything = st.text(st.characters(exclude_categories=()), max_size=24)


@given(near | anything)
@example("%%34%31")
@example("a?b=%C3&c")
def test_matched_values_expand_to_a_matching_uri(rest: str) -> None:
    """Any text is matched without an error, and the expansion of the values matches again."""
    for subject in TEMPLATES:
        values = subject.match(f"r:{rest}")
        assert values is None or subject.match(expand(subject, values)) == values, subject
        assert subject.match(rest) is None or rest.startswith("r:")


@given(near | anything)
def test_reserved_variables_never_fail(rest: str) -> None:
    """Any text is matched without an error, and the decoded text contains the values."""
    for subject in WIDE:
        for value in (subject.match(f"r:{rest}") or {}).values():
            assert all(text in unquote(rest) for text in ([value] if isinstance(value, str) else value))


def steps_of(act: Callable[[], object]) -> int:
    """Count the lines that run."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return steps


HOSTILE = [
    pytest.param("r:{a}.{b}.{c}.{d}", ".", id="dots"),
    pytest.param("r:{a}{b}{c}{d}/", "a", id="adjacent"),
    pytest.param("r:{+a}/{b}{/c*}x{+d}", "/", id="slashes"),
    pytest.param("r:{a*}{.b*}{.c*}/x", ",.", id="lists"),
    pytest.param("r:{a}x{?b,c*}", "&c=", id="query"),
]


@pytest.mark.parametrize(("template", "piece"), HOSTILE)
def test_the_steps_grow_with_the_uri_and_not_faster(template: str, piece: str) -> None:
    """Matching takes linear time, even if the template is ambiguous."""
    subject = UriTemplate(template)
    short, long = (steps_of(partial(subject.match, "r:" + piece * times + '"')) for times in (200, 400))
    assert long <= 2 * short


@pytest.mark.parametrize("template", ["r:{a}", "r:{a}.{b}"])
def test_a_long_uri_is_not_read(template: str) -> None:
    """URIs up to 2048 encoded characters match; longer ones are refused quickly."""
    subject = UriTemplate(template)
    tail = "." if "." in template else "a"
    assert subject.match("r:" + "a" * 2045 + tail) is not None
    assert subject.match("r:" + "a" * 2046 + tail) is None
    assert subject.match("r:" + "é" * 340 + tail) is not None
    assert subject.match("r:" + "é" * 341 + tail) is None
    assert (
        steps_of(partial(subject.match, "r:" + "." * 4_000_000))
        == steps_of(partial(subject.match, "r:" + "." * 2047))
        < 8
    )


@pytest.mark.parametrize(("template", "piece"), HOSTILE)
@pytest.mark.parametrize("encoded", ["", "%25", "%2F", "%2525252525"])
def test_the_work_for_the_longest_uri(template: str, piece: str, encoded: str) -> None:
    """Matching the longest URI, and comparing it with what a template covers, takes a bounded number of steps."""
    subject = UriTemplate(template)
    uri = ("r:" + (piece + encoded) * 2048)[:2048]
    uri = uri[: uri.rindex("%")] if "%" in uri[-2:] else uri

    def look_up() -> None:
        canonical = canonical_uri(uri)
        assert canonical is not None
        subject.match(canonical)
        key = uri_key(canonical)
        subject.cover.contains(key)
        subject.cover.may_contain(key)

    subject.cover.contains("r:")
    assert steps_of(look_up) <= 250_000
