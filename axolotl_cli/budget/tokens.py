"""Numbers of tokens: an estimate from bytes, or the count of a tokenizer."""

from collections.abc import Callable
from typing import Final, NamedTuple

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import nearest

_BYTES_PER_TOKEN: Final = 4


class TokenMethod(NamedTuple):
    """A way to find the number of tokens of a text."""

    name: str
    count: Callable[[str], int]


def _estimate(text: str) -> int:
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


ESTIMATE: Final = TokenMethod("estimate: UTF-8 bytes / 4, rounded up for each tool", _estimate)


def token_method(tokenizer: str | None) -> TokenMethod:
    """Find the method for a tokenizer; without one, tokens are estimated.

    Raises:
        ConfigurationError: if the extra is not installed, or there is no such tokenizer.
    """
    if tokenizer is None:
        return ESTIMATE
    try:
        import splintr
    except ImportError:
        raise ConfigurationError.missing_extra("--tokenizer", "budget") from None
    try:
        encode = splintr.Tokenizer.from_pretrained(tokenizer).encode_ordinary
    except ValueError as error:
        known = str(error).partition("Supported: ")[2]
        near = nearest(tokenizer, known.split(", "))
        hint = f"; did you mean {near!r}?" if near is not None else f": use one of {known}" if known else ""
        raise ConfigurationError(f"--tokenizer: {tokenizer!r} is not known{hint}") from None
    return TokenMethod(f"{tokenizer}, counted by splintr-rs {splintr.__version__}", lambda text: len(encode(text)))
