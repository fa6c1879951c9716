"""Asking a client which directories its user works in."""

from typing import Any, Final

import msgspec

from axolotl_core.question import Question, invalid_answer, invalid_shape

__all__ = ["Root", "read_roots", "roots_question"]

_SCHEME: Final = "file://"
_QUESTION: Final = Question(method="roots/list", params={}, requires={"roots": {}})


class Root(msgspec.Struct, frozen=True):
    """A directory or file that the user works with: a hint of the client's, not a permission."""

    uri: str
    """A `file://` URI."""
    name: str | None = None


class _Roots(msgspec.Struct):
    roots: tuple[Root, ...]


def roots_question() -> Question:
    """Ask for the roots."""
    return _QUESTION


def read_roots(response: Any) -> tuple[Root, ...]:
    """Read the roots from a client's bare result.

    Raises:
        InvalidAnswer: if it is no list of roots, or one of them is no `file://` URI.
    """
    try:
        roots = msgspec.convert(response, _Roots).roots
    except msgspec.ValidationError as error:
        raise invalid_shape(error) from None
    problems = [
        f"roots[{number}].uri: must begin with {_SCHEME}"
        for number, root in enumerate(roots)
        if root.uri[: len(_SCHEME)].lower() != _SCHEME
    ]
    if problems:
        raise invalid_answer(problems)
    return roots
