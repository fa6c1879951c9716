"""Imports of uvicorn without its command line, which needs click, multiprocessing and watchfiles."""

import sys
import threading
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_lock: Final = threading.RLock()


class _LatePackage(ModuleType):
    """A package whose `__init__` is executed when something else than its modules is first used."""

    def __getattr__(self, name: str) -> Any:
        if self.__spec__ is None or self.__spec__.loader is None or name == "__wrapped__":  # which inspect looks for
            raise AttributeError(name)
        with _lock:
            if self.__class__ is _LatePackage:
                self.__class__ = _ExecutedPackage
                self.__spec__.loader.exec_module(self)
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)


class _ExecutedPackage(_LatePackage):
    """Waits for the thread that executes the package, if an attribute does not exist yet."""


def import_uvicorn() -> None:
    """Import uvicorn. Its command line is imported if somebody uses it, for example with `uvicorn.run`."""
    if "uvicorn" in sys.modules:
        return
    spec = find_spec("uvicorn")
    assert spec is not None
    package = module_from_spec(spec)
    package.__class__ = _LatePackage
    sys.modules["uvicorn"] = package
    from uvicorn.config import Config

    package.__dict__["Config"] = Config  # other modules of uvicorn import it from the package
