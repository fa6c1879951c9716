"""Matching finds the same as an exhaustive search, in fewer steps."""

import re
from collections.abc import Iterator, Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from axolotl_core.resources.uri_matching import Atom, Literal, Slot, Variable, capture, pattern_of

Found = list[tuple[Slot, str]]

letters = st.text("ab/", max_size=8)
literals = st.builds(Literal, st.text("ab/", min_size=1, max_size=2))


def slot(alphabet: str, lead: str = "", skips: int = 1) -> Slot:
    """Make a slot for one variable."""
    return Slot((Variable("x", reserved=False, exploded=False, prefix=None),), lead, ",", frozenset(alphabet), skips)


slots = st.builds(slot, st.sampled_from(["a", "b", "ab", "ab/"]), st.sampled_from(["", "/", "b"]))
layouts = st.lists(literals | slots, max_size=5)


def every_way(atoms: Sequence[Atom], text: str, start: int = 0) -> Iterator[tuple[list[int], Found]]:
    """Try all possibilities: yield the end of each atom and the captured values."""
    if not atoms:
        if start == len(text):
            yield [], []
        return
    atom = atoms[0]
    if isinstance(atom, Literal):
        if text.startswith(atom.text, start):
            end = start + len(atom.text)
            yield from (([end, *ends], found) for ends, found in every_way(atoms[1:], text, end))
        return
    assert isinstance(atom, Slot)
    if atom.lead:
        absent = [start] * atom.skips
        yield from ((absent + ends, found) for ends, found in every_way(atoms[atom.skips :], text, start))
    for end in range(start + len(atom.lead), len(text) + 1):
        value = text[start + len(atom.lead) : end]
        if text.startswith(atom.lead, start) and atom.alphabet.issuperset(value):
            for ends, found in every_way(atoms[1:], text, end):
                yield [end, *ends], [(atom, value), *found]


def best_way(atoms: Sequence[Atom], text: str) -> Found | None:
    """Choose by the rule: the most values, then the longest ones, the earlier first."""
    ways = sorted(every_way(atoms, text), key=lambda way: (len(way[1]), way[0]))
    return ways[-1][1] if ways else None


def ranked_way(atoms: Sequence[Atom], text: str) -> Found | None:
    """Choose by the documented rule."""
    try:
        return list(capture(atoms, text))
    except ValueError:
        return None


@given(layouts, letters)
@example([slot("ab"), Literal("b"), slot("ab/")], "abbab/")
@example([slot("ab"), slot("ab", "/"), slot("ab/", "/")], "a/b/b/a")
@example([slot("ab", "/", 2), slot("ab", "b")], "bab")
@example([slot("ab", "/", 2), slot("ab", "b")], "/abab")
def test_the_best_of_all_ways_is_found(atoms: list[Atom], text: str) -> None:
    """The result is the one that the rule chooses among all possible matches."""
    assert ranked_way(atoms, text) == best_way(atoms, text)


@given(layouts, letters)
@example([Literal("a"), slot("b", "/"), Literal("a")], "a/bba")
@example([slot("a"), Literal("/b"), slot("ab", "/")], "aa/b/ba")
def test_a_pattern_finds_the_same(atoms: list[Atom], text: str) -> None:
    """If there is a regular expression, it finds the only possible match."""
    pattern = pattern_of(atoms)
    if pattern is None:
        return
    fitting = pattern.fullmatch(text)
    parts = fitting.groups() if fitting else ()
    places = (atom for atom in atoms if isinstance(atom, Slot))
    found = [(place, part) for place, part in zip(places, parts, strict=False) if part is not None]
    assert len(list(every_way(atoms, text))) == (fitting is not None)
    assert found == (best_way(atoms, text) or [])


def test_there_is_a_pattern_only_where_it_need_not_try_twice() -> None:
    """Ambiguous atoms have no regular expression."""
    assert isinstance(pattern_of([slot("ab"), Literal("/"), slot("ab")]), re.Pattern)
    assert isinstance(pattern_of([slot("ab"), slot("a", "/"), slot("ab", "?")]), re.Pattern)
    assert pattern_of([slot("ab"), Literal("b")]) is None
    assert pattern_of([slot("ab"), slot("ab")]) is None
    assert pattern_of([slot("a"), slot("b", "/"), slot("ab")]) is None
    assert pattern_of([slot("a", "/"), Literal("/")]) is None
