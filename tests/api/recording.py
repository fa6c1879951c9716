"""The public API as lines of text: names that can be imported, commands, settings and the reasons of errors."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import BaseModel
from typer.main import get_command

from axolotl_cli.app import app
from axolotl_server.settings.settings_shape import SETTINGS, Shape

ROOT: Final = Path(__file__).resolve().parents[2]
PUBLIC: Final = ROOT / "tests" / "api" / "public.txt"
DEPRECATED: Final = ROOT / "tests" / "api" / "deprecated.txt"
REFERENCE: Final = ROOT / "docs" / "reference"

_SIMPLE: Final = (bool, int, float, str, bytes, type(None))


def public_api() -> list[str]:
    """Return all lines, sorted. They are the same on every version of Python."""
    lines = [*_importable(), *_commands(), *_settings(), *_reasons()]
    return sorted(set(lines))


def public_names() -> dict[str, Any]:
    """Return what the API reference names, by the path to import it from."""
    pages = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("api-*.md"))
    paths = re.findall(r"^::: ((\S+)\.(\w+))$", pages, re.MULTILINE)
    return {path: getattr(import_module(module), name) for path, module, name in paths}


def _importable() -> Iterator[str]:
    for path, found in public_names().items():
        yield from _lines_of(path, found)


def _lines_of(path: str, found: Any) -> Iterator[str]:
    yield f"import {path}{_signature(found)}"
    if not inspect.isclass(found) or not found.__module__.startswith("axolotl_"):
        return
    for name in sorted(dir(found)):
        member = inspect.getattr_static(found, name)
        if not name.startswith("_") and _is_ours(found, name):
            own = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            yield f"import {path}.{name}{_signature(own) if inspect.isfunction(own) else ''}"


def _is_ours(found: type, name: str) -> bool:
    owner = next((each for each in found.__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.startswith("axolotl_")


def _signature(found: Any) -> str:
    """Describe the parameters without their types, which Python versions print differently."""
    if not (inspect.isfunction(found) or inspect.isclass(found)) or (
        inspect.isclass(found) and issubclass(found, Enum)
    ):
        return ""
    if inspect.isclass(found) and issubclass(found, msgspec.Struct):
        return f"({', '.join(_struct_fields(found))})"
    if inspect.isclass(found) and issubclass(found, BaseModel):
        return f"({', '.join(_model_fields(found))})"
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    plain = [each.replace(annotation=inspect.Parameter.empty, default=_default(each)) for each in parameters]
    return re.sub(r"<\.\.\.>", "...", str(inspect.Signature(plain)))


def _struct_fields(found: type[msgspec.Struct]) -> Iterator[str]:
    """Name the fields of a struct; its own signature would resolve types that are only imported for type checking."""
    required = len(found.__struct_fields__) - len(found.__struct_defaults__)
    for place, name in enumerate(found.__struct_fields__):
        yield name if place < required else f"{name}=..."


def _model_fields(found: type[BaseModel]) -> Iterator[str]:
    """Name the fields of a model; its own signature depends on whether its validator was built."""
    for name, field in found.model_fields.items():
        yield name if field.is_required() else f"{name}=..."


class _Other:
    """A default value that has no stable text."""

    def __repr__(self) -> str:
        return "<...>"


def _default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if default is inspect.Parameter.empty or default == () or type(default) in _SIMPLE:
        return default
    return _Other()


def _commands() -> Iterator[str]:
    yield from _lines_of_command("axolotl", get_command(app))


def _lines_of_command(path: str, command: Any) -> Iterator[str]:
    yield f"command {path}"
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield f"command {path} {(parameter.metavar or parameter.name).upper()}"
        else:
            yield from (f"command {path} {option}" for option in [*parameter.opts, *parameter.secondary_opts])
    for name in getattr(command, "commands", ()):
        yield from _lines_of_command(f"{path} {name}", command.commands[name])


def _settings() -> Iterator[str]:
    yield from _lines_of_settings("", SETTINGS)


def _lines_of_settings(prefix: str, shape: Shape) -> Iterator[str]:
    for name, inner in shape.fields.items():
        if inner.secret is None:
            yield f"setting {prefix}{name}"
            yield from _lines_of_settings(f"{prefix}{name}.", inner)


def _reasons() -> Iterator[str]:
    for package in ("axolotl_core", "axolotl_server"):
        for path in (ROOT / package).rglob("*.py"):
            found = re.findall(r"""(?:["']reason["']: |\breason=)["'](\w+)["']""", path.read_text(encoding="utf-8"))
            yield from (f"reason {word}" for word in found)
