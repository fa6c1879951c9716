"""URI templates (RFC 6570), also read backwards: which values a URI was made of."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.uri_matching import (
    Atom,
    Literal,
    PieceForm,
    Slot,
    UriValues,
    Variable,
    captured,
    pattern_of,
)

if TYPE_CHECKING:
    from uritemplate.variable import URIVariable

UriValue: TypeAlias = str | int | float | Sequence[str] | None

_MOST_CHARACTERS = 8192
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SEGMENT = _UNRESERVED | frozenset("%!$&'()*+,;=:@[]")
_SEPARATORS = {"": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}
_BESIDES = {"+": "/?#", "#": "/?#", "/": "/", "?": "/?", "&": "/?"}
_RESERVED = ("+", "#")
_NAMED = (";", "?", "&")

_EXPRESSION = re.compile(r"(\{[^{}]*\})")
_OPERATED = re.compile(r"\{([^A-Za-z0-9_}]?)([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)(?:\*|:[1-9][0-9]{0,3})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\{}]|%(?![0-9A-Fa-f]{2})")
_TRIPLET_OR_UNSAFE = re.compile(r'%[0-9A-Fa-f]{2}|[^!-~]+|["<>^`|]')
_STRAY_OR_UNSAFE = re.compile(r'%(?![0-9A-Fa-f]{2})|[^!-~]+|["<>\\^`{|}]')


def has_variables(text: str) -> bool:
    """Tell a template, well-formed or not, from a URI: only a template has braces."""
    return "{" in text or "}" in text


class UriTemplate:
    """A template that makes URIs of values, and finds the values in a URI.

    Of all ways to read a URI, the one that finds the most variables counts; among those, earlier variables take as much
    as they can: `{name}.{ext}` finds `a.tar` and `gz` in `a.tar.gz`. The time grows with the URI and not faster.

    - `{x}` holds no `/`, `?` or `#`, no `&` in a query, and no comma beside another, as in `{x,y}`. `{+x}` and `{#x}`
      hold anything. All end where parameters, a query or a fragment begin that the template goes on with.
    - `{x}` and `{+x}` are always there, perhaps empty. All others may be absent, and so may `y` in `{x,y}`: these are
      `optional`, and what is absent is left out of the values.
    - `{;x,y}`, `{?x,y}` and `{&x,y}` come in any order. A parameter that the template does not name, or one that comes
      twice and is not exploded, makes it another URI.
    - An `exploded` variable (`{x*}`) is a list, any other a text. Both are percent-decoded once.

    Characters that a URI must encode count as encoded, except braces, backslashes and control characters: a URI with
    one of these matches nothing, and neither does one of more than 8192 characters.
    """

    def __init__(self, text: str) -> None:
        """Read a template.

        Raises:
            ConfigurationError: if it is malformed, names a variable twice or does not start with a scheme.
        """
        from uritemplate import URITemplate  # only servers with templates pay for the import

        parts = _parts_of(text)
        self._library = URITemplate("".join(parts))
        self._head = parts[0]
        self._atoms = _atoms_of(parts, self._library.variables)
        self._pattern = pattern_of(self._atoms)
        self._slots = slots = [atom for atom in self._atoms if isinstance(atom, Slot)]
        variables = [variable for slot in slots for variable in slot.variables]
        self.text = text
        self.variables = tuple(variable.name for variable in variables)
        self.optional = frozenset(variable.name for slot in slots if slot.lead for variable in slot.variables)
        self.exploded = frozenset(variable.name for variable in variables if variable.exploded)
        self._passed_on = frozenset(v.name for v in variables if v.reserved and v.prefix is None)
        wide = sum(variable.reserved or variable.exploded for variable in variables)
        self.specificity = (-sum(map(len, parts[::2])), len(variables), wide)
        """Sorts the most specific first: more literal characters, fewer variables, fewer that may hold slashes."""

    def expand(self, values: Mapping[str, UriValue]) -> str:
        """Make a URI of the values; a variable without one is left out.

        Raises:
            ValueError: if UTF-8 cannot encode a value.
        """
        return self._library.expand({name: self._spelled(name, value) for name, value in values.items()})

    def match(self, uri: str) -> UriValues | None:
        """Find the values that the URI was made of; None if this template does not make it."""
        if len(uri) > _MOST_CHARACTERS or _REFUSED.search(uri):
            return None
        plain = _canonical(uri)
        if len(plain) > _MOST_CHARACTERS or not plain.startswith(self._head):
            return None
        values: UriValues = {}
        try:
            for slot, text in self._captured(plain[len(self._head) :]):
                values.update(slot.read(text))
        except ValueError:
            return None
        return values

    def _captured(self, text: str) -> Iterable[tuple[Slot, str]]:
        if self._pattern is None:
            return captured(self._atoms, text)
        fitting = self._pattern.fullmatch(text)
        if fitting is None:
            raise ValueError("the text does not fit")
        return [(slot, part) for slot, part in zip(self._slots, fitting.groups(), strict=True) if part is not None]

    def _spelled(self, name: str, value: UriValue) -> str | list[str] | None:
        """Write a value so that the library takes it right: to it a zero is empty, and an empty list is a value."""
        if value is None:
            return None
        encode = _encoded if name in self._passed_on else str
        if isinstance(value, str | int | float):
            return encode(str(value))
        return [encode(item) for item in value] or None

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"


def _parts_of(text: str) -> list[str]:
    """Split a template into literals and expressions, by turns, and check them."""
    parts = _EXPRESSION.split(text)
    _check_literals(text, parts[::2])
    names = [name for expression in parts[1::2] for name in _names_in(text, expression)]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _malformed(text, f"it names the variable {name!r} twice")
    parts[::2] = map(_canonical, parts[::2])
    return parts


def _check_literals(text: str, literals: Sequence[str]) -> None:
    for literal in literals:
        if refused := _REFUSED.search(literal):
            fault = "has no partner" if refused[0] in "{}" else "must be percent-encoded"
            raise _malformed(text, f"{refused[0]!r} {fault}")
    if not _SCHEME.match(literals[0]):
        raise _malformed(text, "it must start with a scheme that is no variable, such as 'files://'")


def _names_in(text: str, expression: str) -> Iterator[str]:
    operator, variables = _OPERATED.findall(expression)[0]
    if operator not in _SEPARATORS:
        raise _malformed(text, f"{expression} has the unknown operator {operator!r}")
    for variable in variables.split(","):
        found = _VARIABLE.fullmatch(variable)
        if found is None:
            raise _malformed(text, f"{expression} has {variable!r} where a variable's name is wanted")
        yield found[1]


def _malformed(text: str, fault: str) -> ConfigurationError:
    return ConfigurationError(f"URI template {text!r}: {fault}")


def _atoms_of(parts: Sequence[str], expressions: Sequence["URIVariable"]) -> list[Atom]:
    """Take a template apart behind its first literal."""
    atoms: list[Atom] = []
    for index, expression in enumerate(expressions, start=1):
        before, after = parts[: 2 * index - 1], parts[2 * index :]
        slots = _slots_of(expression, "".join(before), "".join(after))
        if atoms and isinstance(last := atoms[-1], PieceForm) and last.separator == slots[0].lead:
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
    alphabet = _SEGMENT.union(_BESIDES.get(operator, ""))
    if operator in _NAMED:
        return [PieceForm(variables, operator, separator, alphabet)]
    alphabet = alphabet.difference(_ends(operator, before, after))
    within = alphabet - {separator} if operator == "/" or (operator == "" and len(variables) > 1) else alphabet
    slots = [Slot((each,), separator, separator, alphabet if each.exploded else within) for each in variables]
    slots[0] = replace(slots[0], lead=operator.strip("+"), skips=len(slots) if operator == "#" else 1)
    return slots


def _ends(operator: str, before: str, after: str) -> Iterator[str]:
    """Find the characters that end a value because the template, or the query that it stands in, goes on with them."""
    yield from (mark for mark in ";&" if "{" + mark in after)
    yield from (mark for mark in "?#" if mark in after)
    if operator not in _RESERVED and "?" in before:
        yield "&"


def _canonical(uri: str) -> str:
    """Write what is the same in one way: unreserved characters plain, the others encoded, in capital letters."""
    return _TRIPLET_OR_UNSAFE.sub(_canonical_piece, uri)


def _canonical_piece(found: re.Match[str]) -> str:
    piece = found[0]
    if not piece.startswith("%"):
        return quote(piece, safe="")
    character = chr(int(piece[1:], 16))
    return character if character in _UNRESERVED else piece.upper()


def _encoded(value: str) -> str:
    """Encode what may not stand in a URI and leave triplets; the library encodes nothing beside a triplet."""
    return _STRAY_OR_UNSAFE.sub(lambda found: quote(found[0], safe=""), value)
