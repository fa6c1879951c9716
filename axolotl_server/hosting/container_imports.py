"""Imports dependency_injector without the optional libraries that a container may never use."""

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_COMPARED: Final = (
    ("fastapi.params", "Depends"),
    ("pydantic_settings", "BaseSettings"),
    ("starlette.requests", "Request"),
    ("werkzeug.local", "LocalProxy"),
)
"""What dependency_injector imports from other libraries if they are installed, for `isinstance` and `issubclass`."""
_YAML: Final = "yaml"
"""What it imports to read YAML files. Its `YamlLoader` is a subclass of `yaml.SafeLoader`."""


class _LateModule(ModuleType):
    """Stands for a module while dependency_injector is imported; afterwards, it has everything that the module has."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


class _ComparedClass(type):
    """The type of a class that stands for one of another library, which may not be imported yet."""

    def __instancecheck__(cls, value: object) -> bool:
        real = cls._real()
        return real is not None and isinstance(value, real)

    def __subclasscheck__(cls, other: type) -> bool:
        real = cls._real()
        return real is not None and issubclass(other, real)

    def _real(cls) -> Any:
        """Return the real class. Before its module is imported, nothing can be an instance of it."""
        return getattr(sys.modules.get(cls.__module__), cls.__name__, None)


class _YamlLoader(type):
    """The type of the loader that dependency_injector defines, whose real class is made when it is used."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if isinstance(sys.modules.get(_YAML), _LateModule):
            return super().__new__(cls, name, bases, namespace)
        return type(name, tuple(_real_loader(one) if isinstance(one, cls) else one for one in bases), namespace)

    def __call__(cls, *arguments: Any) -> Any:
        return _real_loader(cls)(*arguments)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_real_loader(cls), name)


@cache
def _real_loader(late: type) -> Any:
    return type(late.__name__, (import_module(_YAML).SafeLoader,), {"__module__": late.__module__})


def import_dependency_injector() -> None:
    """Import dependency_injector; the other libraries are imported when the container needs them."""
    stand_ins = [(module, name, _ComparedClass(name, (), {"__module__": module})) for module, name in _COMPARED]
    late: dict[str, ModuleType] = {}
    for module, name, stand_in in (*stand_ins, (_YAML, "SafeLoader", None)):
        if module not in sys.modules and find_spec(module.partition(".")[0]) is not None:
            late[module] = sys.modules[module] = _LateModule(module)
            setattr(late[module], name, stand_in or _YamlLoader(name, (), {}))
    try:
        import dependency_injector.containers  # noqa: F401
    finally:
        for module in late:
            del sys.modules[module]
