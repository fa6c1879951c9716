"""The canonical form of URIs and their keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.resources.uri_form import canonical_uri, uri_key

rests = st.text(st.sampled_from("abAB/.%25fF20?#&=é\\ "), max_size=30)


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        pytest.param("Files://Host/%61%2d%2f", "files://Host/a-%2F", id="encoding"),
        pytest.param("a:é <b>", "a:%C3%A9%20%3Cb%3E", id="unsafe-characters"),
        pytest.param("a:%", None, id="stray-percent-sign"),
        pytest.param("a:{b}", None, id="braces"),
        pytest.param("a:b\\c", None, id="backslash"),
        pytest.param("a:" + "b" * 2046, "a:" + "b" * 2046, id="longest"),
        pytest.param("a:" + "b" * 2047, None, id="too-long"),
        pytest.param("a:" + "é" * 400, None, id="too-long-when-encoded"),
    ],
)
def test_canonical_form(uri: str, canonical: str | None) -> None:
    """Equivalent URIs have one canonical form; URIs that are not valid have none."""
    assert canonical_uri(uri) == canonical


@pytest.mark.parametrize(
    ("canonical", "key"),
    [
        pytest.param("files://Host/Path", "files://host/Path", id="host"),
        pytest.param("files:///a//b/", "files://a/b", id="slashes"),
        pytest.param("files://a/./b/../../c", "files://c", id="dot-segments"),
        pytest.param("files://a%2Fb%252Fc%25252Fd", "files://a/b/c/d", id="repeated-encoding"),
        pytest.param("files://a%25%252Fb", "files://a%25/b", id="percent-sign"),
        pytest.param("files://a%5Cb%3Fc%20", "files://a/b?c%20", id="other-characters"),
        pytest.param("urn:isbn:1", "urn:isbn:1", id="no-slashes"),
    ],
)
def test_key(canonical: str, key: str) -> None:
    """URIs that code could take for each other have one key."""
    assert uri_key(canonical) == key


@given(rests)
def test_both_forms_are_stable(rest: str) -> None:
    """A canonical URI is its own canonical form, and a key its own key."""
    canonical = canonical_uri(f"a://{rest}")
    if canonical is not None:
        assert canonical_uri(canonical) == canonical
        assert uri_key(uri_key(canonical)) == uri_key(canonical)
