"""Imports dependency_injector without the optional libraries that it compares classes with."""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_CLASSES: Final = (
    ("fastapi.params", "Depends"),
    ("pydantic_settings", "BaseSettings"),
    ("starlette.requests", "Request"),
    ("werkzeug.local", "LocalProxy"),
)
"""What dependency_injector imports from other libraries if they are installed, for `isinstance` and `issubclass`."""


class _LateClass(type):
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


def import_dependency_injector() -> None:
    """Import dependency_injector; the other libraries are imported if the container needs them."""
    late = [
        (module, name)
        for module, name in _CLASSES
        if module not in sys.modules and find_spec(module.partition(".")[0]) is not None
    ]
    for module, name in late:
        sys.modules[module] = stand_in = ModuleType(module)
        setattr(stand_in, name, _LateClass(name, (), {"__module__": module}))
    try:
        import dependency_injector.containers  # noqa: F401
    finally:
        for module, _ in late:
            del sys.modules[module]
