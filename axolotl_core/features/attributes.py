"""Checks of the attributes of features: types, values, misspelled names, and where each is written."""

import inspect
import sys
from abc import ABC
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from axolotl_core.names import nearest


@lru_cache
def _attributes_of(interface: type) -> type[BaseModel]:
    """Make a model of the annotated attributes of an interface, which checks their values."""
    hints = get_type_hints(interface, include_extras=True)
    names = [name for name, hint in hints.items() if not name.startswith("_") and get_origin(hint) is not ClassVar]
    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    fields: dict[str, Any] = {name: (hints[name], ...) for name in names}
    return create_model("Attributes", __config__=config, **fields)


def faults_of_attributes(feature: Any, interface: type) -> Iterator[str]:
    """Describe every attribute with a wrong value, and every one whose name looks like a misspelled one."""
    what = f"{type(feature).__name__} {feature.name!r}"
    if hasattr(feature, "function"):
        what = f"{feature.function.__name__}() {feature.name!r}"
    attributes = _attributes_of(interface)
    known = [*attributes.model_fields]
    try:
        attributes.model_validate({name: getattr(feature, name) for name in known})
    except ValidationError as error:
        for (name, *_), alternatives in groupby(error.errors(), lambda finding: finding["loc"][:1]):
            expected = dict.fromkeys(finding["msg"].removeprefix("Input should be ") for finding in alternatives)
            value = _shown(getattr(feature, str(name)))
            yield f"{what}{place_of(feature, str(name))}: {name} must be {' or '.join(expected)}, not {value}"
    if feature.execution == "loop" and feature._has_plain_code:
        yield (
            f'{what}{place_of(feature, "execution")}: execution is "loop", but its code is a plain function: remove '
            "execution to run it in a thread, or write async def"
        )
    for name, value in _foreign_values(type(feature), known):
        near = similar(name, known)
        if near is not None:
            yield (
                f"{what}{place_of(feature, name)}: {name} = {_shown(value)} has no effect; did you mean {near}? "
                f"If it is a value of your own, call it _{name}"
            )


def similar(name: str, known: Iterable[str]) -> str | None:
    """Find the attribute that a name stands for: `timeout_seconds` for `timeout`, `execution` for `exection`."""
    known = tuple(known)
    return next((one for one in known if one.startswith(f"{name}_")), None) or nearest(name, known)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 and " at 0x" not in text else type(value).__name__


_PLAIN: Final = (object, ABC, Generic)
"""The other bases of our classes, which have no values."""


def _foreign_values(cls: type, known: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Find the plain values in the user's classes that are not attributes of features."""
    foreign = [base for base in cls.__mro__ if base not in _PLAIN and not base.__module__.startswith("axolotl_core.")]
    if not foreign:
        return
    inherited = {name for base in cls.__mro__ if base not in foreign for name in vars(base)} | {*known}
    for base in foreign:
        for name, value in vars(base).items():
            is_value = isinstance(value, str | int | float | tuple | list | dict | set | frozenset | None)
            if is_value and not name.startswith("_") and name not in inherited:
                yield name, value


def place_of(feature: Any, attribute: str | None = None) -> str:
    """Return ` (file:line)` of a feature, its class or one of its attributes; nothing if it is not in a file."""
    code = getattr(feature, "function", None)
    cls = feature if inspect.isclass(feature) else type(feature)
    owners: list[Any] = [code] if code is not None else list(cls.__mro__)
    if code is None and attribute is not None and attribute not in getattr(feature, "__dict__", ()):
        owners = [owner for owner in owners if attribute in vars(owner)] or owners
    try:
        file = inspect.getsourcefile(inspect.unwrap(owners[0]))
        lines, first = inspect.getsourcelines(owners[0])
    except (OSError, TypeError):
        return ""
    line = first + _offset(lines, attribute) if attribute is not None and code is None else first
    return f" ({relative_path(file)}:{line})" if file else ""


def _offset(lines: list[str], attribute: str) -> int:
    """Find the line of a class's source that sets an attribute."""
    import ast  # only errors need it
    from textwrap import dedent

    [definition, *_] = ast.parse(dedent("".join(lines))).body
    for statement in reversed(getattr(definition, "body", ())):
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
            return int(statement.lineno) - 1
    return 0


def caller_place() -> str:
    """Return ` (file:line)` of the code that uses this package now; nothing if it is not in a file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("axolotl_core.", "abc")):
        frame = frame.f_back
    file = frame.f_code.co_filename
    return "" if file.startswith("<") else f" ({relative_path(file)}:{frame.f_lineno})"


def label_of(thing: Any) -> str:
    """Describe something that is not a feature: its name and place, if it has them."""
    if inspect.isclass(thing):
        return f"The class {thing.__name__}{place_of(thing)}"
    if inspect.isroutine(thing) and hasattr(thing, "__name__"):  # a decorated method is a descriptor without a name
        return f"{thing.__name__}(){place_of_code(thing)}"
    return _shown(thing)


def place_of_code(function: Any) -> str:
    """Return ` (file:line)` of a function; nothing if it is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f" ({relative_path(code.co_filename)}:{code.co_firstlineno})"


def relative_path(file: str | None) -> str:
    """Return a path as seen from the current directory, if it is inside of it."""
    path, here = Path(file or ""), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
