"""The text format of keys and signatures."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_examples.three_good_sources.keys import PublicKey, Signature


@given(st.binary(min_size=32, max_size=32))
def test_key_round_trip(raw: bytes) -> None:
    """Every key has one text of 52 characters, which can be parsed back."""
    text = str(PublicKey(raw))
    assert len(text) == 52
    assert PublicKey.parse(text) == PublicKey(raw)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(b"\x00" * 32, "y" * 52, id="zeros"),
        pytest.param(b"\xff" * 32, "9" * 51 + "o", id="ones"),
        pytest.param(b"hello" + b"\x00" * 27, "pb1sa5dx" + "y" * 44, id="hello"),
    ],
)
def test_alphabet(raw: bytes, text: str) -> None:
    """The alphabet is that of z-base-32."""
    assert str(PublicKey(raw)) == text


@given(st.text(max_size=60) | st.text(alphabet="ybndrfg8ejkmcpqxot1uwisza345h769", min_size=52, max_size=52))
def test_any_text(text: str) -> None:
    """Any text is either a key in its only valid form, or rejected."""
    with contextlib.suppress(ValueError):
        assert str(PublicKey.parse(text)) == text


@given(st.binary(min_size=64, max_size=64))
def test_signature_round_trip(raw: bytes) -> None:
    """Every signature has one text, which can be parsed back."""
    assert Signature.parse(str(Signature(raw))) == Signature(raw)


@given(st.text(max_size=100))
def test_any_signature(text: str) -> None:
    """A text that is not a signature is rejected."""
    with pytest.raises(ValueError, match="must be an Ed25519 signature"):
        Signature.parse(text)


def test_unused_bits() -> None:
    """The unused bits of the last character must be zero."""
    with pytest.raises(ValueError, match="PKARR"):
        PublicKey.parse("y" * 51 + "b")
    with pytest.raises(ValueError, match="Ed25519"):
        Signature.parse("A" * 85 + "B==")
