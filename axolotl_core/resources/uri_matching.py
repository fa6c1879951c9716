"""How the pieces of a URI template are found in a URI, in a time that grows with the URI and not faster."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
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
        """Read a value.

        Raises:
            ValueError: if it is not UTF-8, or longer than the variable's prefix.
        """
        value = unquote(text, errors="strict")
        if self.prefix is not None and len(value) > self.prefix:
            raise ValueError(f"{self.name} is longer than the template makes it")
        return value


class Atom(ABC):
    """A piece of a template that is matched as one.

    A rank says how well a text fits the atoms from this one on: the number of optional variables that are found, times
    the number of places in the text, plus the place where this atom ends. A row has the rank of every place where the
    atom may begin; -1 is none. As a row is made of the rows that follow it, nothing is tried twice.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def pattern(self) -> str:
        """Write the atom as a regular expression, with one group for a value."""

    @abstractmethod
    def starts(self, following: frozenset[str]) -> frozenset[str] | None:
        """Find the characters that a text may begin with; None if they do not tell whether the atom goes on."""

    @abstractmethod
    def ranks(self, text: str, rows: Sequence[list[int]]) -> list[int]:
        """Make the atom's row; `rows` are those of the atoms that follow, the next one last."""


@dataclass(frozen=True, slots=True)
class Literal(Atom):
    """Text that stands as it is."""

    text: str

    @property
    def pattern(self) -> str:
        """Write the text."""
        return re.escape(self.text)

    def starts(self, following: frozenset[str]) -> frozenset[str]:
        """Find the first character."""
        return frozenset(self.text[0])

    def ranks(self, text: str, rows: Sequence[list[int]]) -> list[int]:
        """Rank the places where the text stands."""
        row = [-1] * len(rows[-1])
        endings = _endings(rows[-1])
        for place in _places_of(self.text, text):
            row[place] = endings[place + len(self.text)]
        return row


@dataclass(frozen=True, slots=True)
class Slot(Atom):
    """The place of a value, behind the character that leads to it; without a lead it is always there."""

    variables: tuple[Variable, ...]
    lead: str
    separator: str
    alphabet: frozenset[str]
    skips: int = 1
    """How many atoms are absent where this one is."""

    @property
    def pattern(self) -> str:
        """Write the lead and the alphabet."""
        value = f"([{re.escape(''.join(sorted(self.alphabet)))}]*)"
        return f"(?:{re.escape(self.lead)}{value})?" if self.lead else value

    def starts(self, following: frozenset[str]) -> frozenset[str] | None:
        """Find the lead or the alphabet, and what follows."""
        if not following.isdisjoint(self.alphabet | {self.lead}):
            return None
        return following | (frozenset(self.lead) or self.alphabet)

    def ranks(self, text: str, rows: Sequence[list[int]]) -> list[int]:
        """Rank the places where a value, or nothing, may stand."""
        reach = self._reach(text, _endings(rows[-1]))
        if not self.lead:
            return reach
        row = _endings(rows[-self.skips])
        for place in _places_of(self.lead, text):
            if reach[place + 1] >= 0:
                row[place] = max(row[place], reach[place + 1] + len(row))
        return row

    def _reach(self, text: str, endings: list[int]) -> list[int]:
        """Find the best rank for each place where the value itself may begin."""
        best = -1
        for place in range(len(text), -1, -1):
            if place < len(text) and text[place] not in self.alphabet:
                best = -1
            best = max(best, endings[place])
            endings[place] = best
        return endings

    def read(self, text: str) -> UriValues:
        """Find the values in what stands behind the lead.

        Raises:
            ValueError: if the template does not make such values.
        """
        [variable] = self.variables
        if not variable.exploded:
            return {variable.name: variable.decode(text)}
        items = text.split(self.separator) if text or self.lead else []
        return {variable.name: [variable.decode(item) for item in items]}


@dataclass(frozen=True, slots=True)
class PieceForm(Slot):
    """The place of parameters that bring their names with them, in any order."""

    def read(self, text: str) -> UriValues:
        """Find the values by their names.

        Raises:
            ValueError: if a name is unknown, or comes twice where one value is wanted.
        """
        written: dict[str, list[str]] = {}
        for parameter in text.split(self.separator):
            name, _, value = parameter.partition("=")
            written.setdefault(name, []).append(value)
        found: UriValues = {}
        for variable in self.variables:
            values = [variable.decode(value) for value in written.pop(variable.name, ())]
            if len(values) > 1 and not variable.exploded:
                raise ValueError(f"{variable.name} comes twice")
            if values:
                found[variable.name] = values if variable.exploded else values[0]
        if written:
            raise ValueError("no variable has such a name")
        return found


def pattern_of(atoms: Sequence[Atom]) -> re.Pattern[str] | None:
    """Make a regular expression that never has to try twice; None where the atoms can be told apart in several ways."""
    following: frozenset[str] = frozenset()
    for atom in reversed(atoms):
        starts = atom.starts(following)
        if starts is None:
            return None
        following = starts
    return re.compile("".join(atom.pattern for atom in atoms))


def captured(atoms: Sequence[Atom], text: str) -> Iterator[tuple[Slot, str]]:
    """Find what stands in each slot of a text, the absent ones left out.

    Raises:
        ValueError: if the text does not fit.
    """
    rows = [[-1] * len(text) + [len(text)]]
    for atom in reversed(atoms):
        rows.append(atom.ranks(text, rows))
    if rows[-1][0] < 0:
        raise ValueError("the text does not fit")
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


def _places_of(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _endings(following: Sequence[int]) -> list[int]:
    """Rank, for each place, an atom that ends there."""
    places = len(following)
    return [-1 if rank < 0 else rank - rank % places + place for place, rank in enumerate(following)]
