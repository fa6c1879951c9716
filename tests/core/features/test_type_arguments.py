"""Type arguments of generic bases, also through intermediate classes."""

from typing import Any, Generic, TypeVar

import pytest

from axolotl_core.features.feature import open_parameters, type_arguments

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Root(Generic[A, B]):
    """Collects the arguments of calls."""


class Both(Root[int, str]): ...


class Open(Root[A, B]): ...


class Half(Root[int, A], Generic[A]): ...


class Turned(Root[B, A], Generic[A, B]): ...


class Wrapped(Root[list[A], dict[A, B]], Generic[A, B]): ...


class Renamed(Root[C, C], Generic[C]): ...


class Other(Generic[A]): ...


class FilledOpen(Open[int, str]): ...


class FilledHalf(Half[str]): ...


class FilledTurned(Turned[int, str]): ...


class FilledWrapped(Wrapped[int, str]): ...


class FilledRenamed(Renamed[int]): ...


class Twice(Half[C], Generic[C]): ...


class FilledTwice(Twice[bytes]): ...


class Beside(Other[bytes], Half[str]): ...


class Below(FilledHalf): ...


class BelowAndGeneric(FilledHalf, Generic[C]): ...


class Again(Both, Root[int, str]): ...


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        pytest.param(Both, (int, str), id="direct"),
        pytest.param(FilledOpen, (int, str), id="in-between"),
        pytest.param(FilledHalf, (int, str), id="half"),
        pytest.param(FilledTurned, (str, int), id="turned"),
        pytest.param(FilledWrapped, (list[int], dict[int, str]), id="wrapped"),
        pytest.param(FilledRenamed, (int, int), id="one-for-two"),
        pytest.param(FilledTwice, (int, bytes), id="two-in-between"),
        pytest.param(Beside, (int, str), id="second-base"),
        pytest.param(Again, (int, str), id="said-again"),
        pytest.param(Open, None, id="open"),
        pytest.param(Half, None, id="half-open"),
        pytest.param(Twice, None, id="open-in-between"),
        pytest.param(Wrapped, None, id="open-inside"),
        pytest.param(Other, None, id="not-below"),
        pytest.param(Root, None, id="the-root"),
        pytest.param(int, None, id="no-generic"),
        pytest.param(Below, None, id="says-nothing-itself"),
        pytest.param(BelowAndGeneric, None, id="says-something-else"),
    ],
)
def test_the_arguments_of_a_class_are_found(kind: Any, found: tuple[Any, ...] | None) -> None:
    """A class has its own type arguments, not those of its parent."""
    assert type_arguments(kind, Root) == found


@pytest.mark.parametrize(
    ("argument", "parameters"),
    [
        pytest.param(A, (A,), id="parameter"),
        pytest.param(list[A], (A,), id="inside"),  # type: ignore[valid-type]
        pytest.param(dict[A, B], (A, B), id="two"),  # type: ignore[valid-type]
        pytest.param(Half, (A,), id="class"),
        pytest.param(Both, (), id="filled"),
        pytest.param(int, (), id="plain"),
        pytest.param(None, (), id="none"),
    ],
)
def test_type_variables_are_listed(argument: Any, parameters: tuple[Any, ...]) -> None:
    """All type variables are listed."""
    assert open_parameters(argument) == parameters
