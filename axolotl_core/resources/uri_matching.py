"""Matching of URIs against the parts of a template, in linear time."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

UriValues: TypeAlias = dict[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a template, with its modifiers."""

    name: str
    reserved: bool
    exploded: bool
    prefix: int | None

    def decode(self, text: str) -> str:
        """Decode a value.

        Raises:
            ValueError: if it is not UTF-8, or longer than the variable's prefix.
        """
        value = unquote(text, errors="strict")
        if self.prefix is not None and len(value) > self.prefix:
            raise ValueError(f"{self.name} is longer than its prefix")
        return value


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal text."""

    text: str

    @property
    def pattern(self) -> str:
        """The atom as a regular expression."""
        return re.escape(self.text)

    def starts(self, following: frozenset[str]) -> frozenset[str]:
        """Return the characters that a match can begin with."""
        return frozenset(self.text[0])

    def ranks(self, text: str, rows: Sequence[list[int]]) -> list[int]:
        """Compute the row of the atom. `rows` are those of the following atoms, the next one last."""
        row = [-1] * len(rows[-1])
        endings = _endings(rows[-1])
        for position in _positions_of(self.text, text):
            row[position] = endings[position + len(self.text)]
        return row


@dataclass(frozen=True, slots=True)
class Slot:
    """A value after a leading character. Without a lead, the value is always present."""

    variables: tuple[Variable, ...]
    lead: str
    separator: str
    alphabet: frozenset[str]
    skips: int = 1
    """How many atoms are absent if this one is."""

    @property
    def pattern(self) -> str:
        """The atom as a regular expression, with one group for the value."""
        value = f"([{re.escape(''.join(sorted(self.alphabet)))}]*)"
        return f"(?:{re.escape(self.lead)}{value})?" if self.lead else value

    def starts(self, following: frozenset[str]) -> frozenset[str] | None:
        """Return the characters that a match can begin with; None if they do not show where the slot ends."""
        if not following.isdisjoint(self.alphabet | {self.lead}):
            return None
        return following | (frozenset(self.lead) or self.alphabet)

    def ranks(self, text: str, rows: Sequence[list[int]]) -> list[int]:
        """Compute the row of the slot, as a literal does."""
        reach = self._reach(text, _endings(rows[-1]))
        if not self.lead:
            return reach
        row = _endings(rows[-self.skips])
        for position in _positions_of(self.lead, text):
            if reach[position + 1] >= 0:
                row[position] = max(row[position], reach[position + 1] + len(row))
        return row

    def _reach(self, text: str, endings: list[int]) -> list[int]:
        """Find the best rank for each position where the value could begin."""
        best = -1
        for position in range(len(text), -1, -1):
            if position < len(text) and text[position] not in self.alphabet:
                best = -1
            best = max(best, endings[position])
            endings[position] = best
        return endings

    def read(self, text: str) -> UriValues:
        """Parse the text after the lead.

        Raises:
            ValueError: if the template cannot produce such values.
        """
        [variable] = self.variables
        if not variable.exploded:
            return {variable.name: variable.decode(text)}
        items = text.split(self.separator) if text or self.lead else []
        return {variable.name: [variable.decode(item) for item in items]}


@dataclass(frozen=True, slots=True)
class NamedSlot(Slot):
    """Parameters with names, in any order."""

    def read(self, text: str) -> UriValues:
        written: dict[str, list[str]] = {}
        for parameter in text.split(self.separator):
            name, _, value = parameter.partition("=")
            written.setdefault(name, []).append(value)
        found: UriValues = {}
        for variable in self.variables:
            values = [variable.decode(value) for value in written.pop(variable.name, ())]
            if len(values) > 1 and not variable.exploded:
                raise ValueError(f"{variable.name} occurs twice")
            if values:
                found[variable.name] = values if variable.exploded else values[0]
        if written:
            raise ValueError("unknown parameter")
        return found


Atom: TypeAlias = Literal | Slot
"""A part of a template that is matched as one.

Matching computes a row of ranks per atom, from the last atom to the first, so nothing is tried twice. A row contains
one rank per position where the atom could begin, or -1 if the rest of the text does not match from there. The rank is
the number of optional variables found from there on, times the number of positions, plus the position where the atom
ends.
"""


def pattern_of(atoms: Sequence[Atom]) -> re.Pattern[str] | None:
    """Build a regular expression that never backtracks; None if the atoms are ambiguous."""
    following: frozenset[str] = frozenset()
    for atom in reversed(atoms):
        starts = atom.starts(following)
        if starts is None:
            return None
        following = starts
    return re.compile("".join(atom.pattern for atom in atoms))


def capture(atoms: Sequence[Atom], text: str) -> Iterator[tuple[Slot, str]]:
    """Find the text of each slot that is present.

    Raises:
        ValueError: if the text does not match.
    """
    rows = [[-1] * len(text) + [len(text)]]
    for atom in reversed(atoms):
        rows.append(atom.ranks(text, rows))
    if rows[-1][0] < 0:
        raise ValueError("the text does not match")
    start = index = 0
    while index < len(atoms):
        atom, end = atoms[index], rows[-1 - index][start] % len(rows[0])
        step = 1
        if isinstance(atom, Slot):
            if atom.lead and start == end:
                step = atom.skips
            else:
                yield atom, text[start + len(atom.lead) : end]
        start, index = end, index + step


class AtomSequence:
    """Atoms in a row, compiled to match a text."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self._atoms = atoms
        self._pattern = pattern_of(atoms)
        self.slots: Sequence[Slot] = [atom for atom in atoms if isinstance(atom, Slot)]

    def values(self, text: str) -> UriValues | None:
        """Find the values of the slots in a text; None if it does not match."""
        values: UriValues = {}
        try:
            for slot, part in self._capture(text):
                values.update(slot.read(part))
        except ValueError:
            return None
        return values

    def _capture(self, text: str) -> Iterable[tuple[Slot, str]]:
        if self._pattern is None:
            return capture(self._atoms, text)
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ValueError("the text does not match")
        return [(slot, part) for slot, part in zip(self.slots, match.groups(), strict=True) if part is not None]


def _positions_of(part: str, text: str) -> Iterator[int]:
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + 1)


def _endings(following: Sequence[int]) -> list[int]:
    """Return, for each position, the rank of an atom that ends there."""
    positions = len(following)
    return [-1 if rank < 0 else rank - rank % positions + position for position, rank in enumerate(following)]
