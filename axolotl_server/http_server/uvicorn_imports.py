"""Imports of uvicorn without what only its command line needs, such as click and watchfiles."""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_lock: Final = threading.RLock()


class _LateModule(ModuleType):
    """A module that is executed when it is first used; the modules of a package can be imported before."""

    def __getattr__(self, name: str) -> Any:
        if self.__spec__ is None or self.__spec__.loader is None or name in _OPTIONAL:
            raise AttributeError(name)
        with _lock:
            if self.__class__ is _LateModule:
                self.__class__ = _ExecutedModule
                self.__spec__.loader.exec_module(self)
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)


class _ExecutedModule(_LateModule):
    """Waits for the thread that executes the module, if an attribute does not exist yet."""


_OPTIONAL: Final = frozenset({"__path__", "__wrapped__"})
"""What the import system and `inspect` look for in every module."""


def import_uvicorn() -> None:
    """Import uvicorn. The rest of it is imported if somebody uses it, for example with `uvicorn.run`."""
    if "uvicorn" in sys.modules:
        return
    _import_late("logging.config")  # which uvicorn uses only to configure logging
    package = _import_late("uvicorn")
    from uvicorn.config import Config

    package.__dict__["Config"] = Config  # other modules of uvicorn import it from the package


def _import_late(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    module.__class__ = _LateModule
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module
