"""URI templates (RFC 6570), and matching of URIs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.uri_form import FORBIDDEN, UNRESERVED, canonical_uri, has_dot_segments, normalized, uri_key
from axolotl_core.resources.uri_matching import Atom, AtomSequence, Literal, NamedSlot, Slot, UriValues, Variable

if TYPE_CHECKING:
    from uritemplate.variable import URIVariable

_SEGMENT = UNRESERVED | frozenset("%!$&'()*+,;=:@[]")
_ANY_CHARACTER = _SEGMENT | frozenset("/?#")
_SEPARATORS = {"": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}
_EXTRA_CHARACTERS = {"+": "/?#", "#": "/?#", "/": "/", "?": "/?", "&": "/?"}
_RESERVED = ("+", "#")
_WITH_NAMES = (";", "?", "&")

_EXPRESSION = re.compile(r"(\{[^{}]*\})")
_OPERATOR = re.compile(r"\{([^A-Za-z0-9_}]?)([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)(?:\*|:[1-9][0-9]{0,3})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MARK = "\0"
"""Stands for an expression while the literals around it are normalized."""


def has_variables(text: str) -> bool:
    """Whether a text is a template, even a malformed one, and not a URI."""
    return "{" in text or "}" in text


class UriTemplate:
    """A template that finds values in a URI.

    If a URI can be read in several ways, the one with the most variables is used. Among those, earlier variables take
    as much as possible: `{name}.{ext}` finds `a.tar` and `gz` in `a.tar.gz`. Matching takes linear time.

    - `{x}` matches no `/`, `?` or `#`, no `&` in a query, and no comma next to another variable, as in `{x,y}`. `{+x}`
      and `{#x}` match anything. All of them end where the template continues with parameters, a query or a fragment.
    - `{x}` and `{+x}` are always present, but may be empty. All others are `optional`, including `y` in `{x,y}`. Absent
      variables are left out of the values.
    - `{;x,y}`, `{?x,y}` and `{&x,y}` match parameters in any order. A URI with an unknown parameter, or with a repeated
      parameter that is not exploded, does not match.
    - The value of an `exploded` variable (`{x*}`) is a list; all other values are strings. They are percent-decoded
      once.

    Characters that must be encoded in a URI are treated as encoded, except braces, backslashes and control characters.
    A URI with one of these, or with more than 2048 characters, never matches.
    """

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ConfigurationError: if it is malformed, contains a variable twice or does not begin with a scheme.
        """
        from uritemplate import URITemplate  # servers without templates start faster

        parts = _parts_of(text)
        self._parts = parts
        self._head = parts[0]
        self._atoms = AtomSequence(_atoms_of(parts, URITemplate("".join(parts)).variables))
        slots = self._atoms.slots
        variables = [variable for slot in slots for variable in slot.variables]
        self.text = text
        self.variables = tuple(variable.name for variable in variables)
        self.optional = frozenset(variable.name for slot in slots if slot.lead for variable in slot.variables)
        self.exploded = frozenset(variable.name for variable in variables if variable.exploded)
        wide = sum(variable.reserved or variable.exploded for variable in variables)
        self.specificity = (-sum(map(len, parts[::2])), len(variables), wide)
        """Sorts the most specific template first: more literals, fewer variables, fewer that match slashes."""

    def match(self, uri: str) -> UriValues | None:
        """Find the values of the variables in a URI; None if it does not match."""
        canonical = canonical_uri(uri)
        if canonical is None or not canonical.startswith(self._head):
            return None
        return self._atoms.values(canonical[len(self._head) :])

    @cached_property
    def cover(self) -> "UriCover":
        """The URIs that the template matches, in any spelling."""
        return UriCover(self._parts)

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"


class UriCover:
    """The keys of the URIs that a template matches in some spelling, because a value may contain any character encoded.

    `contains` takes no slash for a part of `{x}`, where it would have to be encoded; `may_contain` does.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        from uritemplate import URITemplate  # servers without templates start faster

        keyed = _keyed(parts)
        atoms = _atoms_of(keyed, URITemplate("".join(keyed)).variables)
        self._head = keyed[0]
        self._atoms = AtomSequence([_loosened(atom, slashes=False) for atom in atoms])
        self._wide_atoms = AtomSequence([_loosened(atom, slashes=True) for atom in atoms])

    def contains(self, key: str) -> bool:
        """Whether the template matches a URI with this key that has no encoded slashes."""
        return self._matches(self._atoms, key)

    def may_contain(self, key: str) -> bool:
        """Whether the template matches some URI with this key."""
        return self._matches(self._wide_atoms, key) or self._matches(self._wide_atoms, f"{key}/")

    def _matches(self, atoms: AtomSequence, key: str) -> bool:
        return key.startswith(self._head) and atoms.values(key[len(self._head) :]) is not None


def _keyed(parts: Sequence[str]) -> list[str]:
    """Replace the literals of a template by those of the keys of its URIs."""
    literals = uri_key(_MARK.join(parts[::2])).split(_MARK)
    return [literals[index // 2] if index % 2 == 0 else part for index, part in enumerate(parts)]


def _loosened(atom: Atom, *, slashes: bool) -> Atom:
    """Let a slot match every character that may be encoded in its value."""
    if not isinstance(atom, Slot):
        return atom
    alphabet = _ANY_CHARACTER if slashes or "/" in atom.alphabet else _ANY_CHARACTER - {"/"}
    prefix = atom.variables[0].prefix if len(atom.variables) == 1 and not isinstance(atom, NamedSlot) else None
    value = Variable(atom.variables[0].name, reserved=True, exploded=False, prefix=prefix)
    return Slot((value,), atom.lead, atom.separator, alphabet, atom.skips)


def _parts_of(text: str) -> list[str]:
    """Split a template into alternating literals and expressions, and check them."""
    parts = _EXPRESSION.split(text)
    for literal in parts[::2]:
        if forbidden := FORBIDDEN.search(literal):
            fault = "is unbalanced" if forbidden[0] in "{}" else "must be percent-encoded"
            raise _malformed(text, f"{forbidden[0]!r} {fault}")
    if not _SCHEME.match(parts[0]):
        raise _malformed(text, "it must begin with a literal scheme, such as 'files://'")
    names = [name for expression in parts[1::2] for name in _names_in(text, expression)]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _malformed(text, f"it contains the variable {name!r} twice")
    parts[::2] = map(normalized, parts[::2])
    if has_dot_segments(_MARK.join(parts[::2])):
        raise _malformed(text, "it must not contain a segment '.' or '..'")
    return parts


def _names_in(text: str, expression: str) -> Iterator[str]:
    operator, variables = _OPERATOR.findall(expression)[0]
    if operator not in _SEPARATORS:
        raise _malformed(text, f"{expression} has the unknown operator {operator!r}")
    for variable in variables.split(","):
        found = _VARIABLE.fullmatch(variable)
        if found is None:
            raise _malformed(text, f"{expression} has {variable!r} instead of the name of a variable")
        yield found[1]


def _malformed(text: str, fault: str) -> ConfigurationError:
    return ConfigurationError(f"URI template {text!r}: {fault}")


def _atoms_of(parts: Sequence[str], expressions: Sequence["URIVariable"]) -> list[Atom]:
    """Parse a template after its first literal."""
    atoms: list[Atom] = []
    for index, expression in enumerate(expressions, start=1):
        before, after = parts[: 2 * index - 1], parts[2 * index :]
        slots = _slots_of(expression, "".join(before), "".join(after))
        if atoms and isinstance(last := atoms[-1], NamedSlot) and last.separator == slots[0].lead:
            atoms[-1] = replace(last, variables=last.variables + slots[0].variables)
        else:
            atoms.extend(slots)
        if after[0]:
            atoms.append(Literal(after[0]))
    return atoms


def _slots_of(expression: "URIVariable", before: str, after: str) -> list[Slot]:
    operator: str = expression.operator.value
    separator = _SEPARATORS[operator]
    variables = tuple(
        Variable(name, operator in _RESERVED, bool(modifiers["explode"]), modifiers["prefix"])
        for name, modifiers in expression.variables
    )
    alphabet = _SEGMENT.union(_EXTRA_CHARACTERS.get(operator, ""))
    if operator in _WITH_NAMES:
        return [NamedSlot(variables, operator, separator, alphabet)]
    # the characters that end a value, because the template or the query continues with them
    terminators = {mark for mark in ";&" if "{" + mark in after} | {mark for mark in "?#" if mark in after}
    if operator not in _RESERVED and "?" in before:
        terminators.add("&")
    alphabet -= terminators
    within = alphabet - {separator} if operator == "/" or (operator == "" and len(variables) > 1) else alphabet
    slots = [Slot((each,), separator, separator, alphabet if each.exploded else within) for each in variables]
    slots[0] = replace(slots[0], lead=operator.strip("+"), skips=len(slots) if operator == "#" else 1)
    return slots
