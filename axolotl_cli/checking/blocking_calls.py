"""Finding coroutines that block the event loop, by what their source calls."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, Final

from axolotl_core.features.feature import IFeature
from axolotl_core.prompts import IPrompt
from axolotl_core.resources.resource import IResource, IResourceTemplate

_VERBS: Final = ("delete", "get", "head", "options", "patch", "post", "put", "request")
_BLOCKING: Final = frozenset(
    {
        "builtins.input",
        "os.popen",
        "os.system",
        "os.waitpid",
        "select.select",
        "smtplib.SMTP",
        "smtplib.SMTP_SSL",
        "socket.create_connection",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "subprocess.run",
        "time.sleep",
        "urllib.request.urlopen",
        "urllib.request.urlretrieve",
        *(f"{library}.{verb}" for library in ("httpx", "requests", "urllib3") for verb in _VERBS),
    }
)
_HOMES: Final = {"_socket": "socket", "httpx._api": "httpx", "nt": "os", "posix": "os", "requests.api": "requests"}
"""Where functions are defined that are known by a shorter name."""
_DEPTH: Final = 3
"""How far to follow the functions that a coroutine calls."""


def blocking_calls(feature: IFeature) -> tuple[str, ...]:
    """Name what the asynchronous code of a feature calls that blocks; nothing where that cannot be found out."""
    code = _code_of(feature)
    if not isinstance(code, FunctionType) or not _is_asynchronous(code):
        return ()
    return tuple(dict.fromkeys(_Reader(feature).read(code)))


def _code_of(feature: IFeature) -> Any:
    """Find the function that somebody has written."""
    written = getattr(feature, "function", None)
    if written is None:
        owners, names = type(feature).__mro__, _names_for(feature)
        written = next((vars(owner)[name] for owner in owners for name in names if name in vars(owner)), None)
    return getattr(written, "__func__", written)


def _names_for(feature: IFeature) -> tuple[str, ...]:
    if isinstance(feature, IPrompt):
        return ("render",)
    return ("read",) if isinstance(feature, IResource | IResourceTemplate) else ("stream", "execute")


def _is_asynchronous(code: FunctionType) -> bool:
    return inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code)


class _Reader:
    """Reads functions and what they call in turn, each once."""

    def __init__(self, feature: IFeature) -> None:
        self._owner = getattr(getattr(feature, "function", None), "__self__", feature)
        self._seen: set[FunctionType] = set()

    def read(self, code: FunctionType, depth: int = 0) -> Iterator[str]:
        """Give the names of what blocks and where, in the order of the source."""
        if code in self._seen or depth > _DEPTH:
            return
        self._seen.add(code)
        tree = _tree_of(code)
        if tree is None:
            return
        known = {**_known_to(code), **_imported_in(tree)}
        for call in _calls_in(tree):
            name, target = _resolve(call.func, known)
            if name in _BLOCKING:
                yield f"{name} in line {code.__code__.co_firstlineno + call.lineno - 1}"
            else:
                yield from self._follow(call.func, target, code, depth)

    def _follow(self, written: ast.expr, target: Any, code: FunctionType, depth: int) -> Iterator[str]:
        """Go on in a plain function of the same module, or a plain method of the same object."""
        match written:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                target = inspect.getattr_static(type(self._owner), name, None)
        if isinstance(target, FunctionType) and target.__module__ == code.__module__:
            yield from self.read(target, depth + 1)


def _tree_of(code: FunctionType) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _calls_in(tree: ast.AST) -> Iterator[ast.Call]:
    """Find the calls that are made on the way; what stands in a function of its own may run anywhere."""
    pending: list[ast.AST] = [*_body_of(tree)]
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            pending[:0] = ast.iter_child_nodes(node)


def _body_of(tree: ast.AST) -> list[ast.stmt]:
    [function] = getattr(tree, "body", [None])
    return getattr(function, "body", [])


def _known_to(code: FunctionType) -> Mapping[str, Any]:
    builtins = code.__globals__.get("__builtins__", {})
    names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    cells = zip(code.__code__.co_freevars, code.__closure__ or (), strict=False)
    known = {**names, **code.__globals__, **{name: _content(cell) for name, cell in cells}}
    return {name: value for name, value in known.items() if name not in code.__code__.co_varnames}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _imported_in(tree: ast.AST) -> dict[str, str]:
    """Give the full names of what a function imports itself."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                roots = {alias.name.partition(".")[0] for alias in aliases if alias.asname is None}
                names.update({root: root for root in roots})
                names.update({alias.asname: alias.name for alias in aliases if alias.asname is not None})
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                names.update({alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases})
    return names


def _resolve(written: ast.expr, known: Mapping[str, Any]) -> tuple[str, Any]:
    """Give the full name of what is called, and the thing itself where it is at hand."""
    match written:
        case ast.Name(id=name) if name in known:
            return _name_of(known[name]), known[name]
        case ast.Attribute(value=value, attr=attribute):
            name, owner = _resolve(value, known)
            target = getattr(owner, attribute, None) if isinstance(owner, ModuleType) else None
            return (f"{name}.{attribute}", target) if name else ("", None)
    return "", None


def _name_of(thing: Any) -> str:
    if isinstance(thing, str):
        return thing
    if isinstance(thing, ModuleType):
        return thing.__name__
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str) or not callable(thing):
        return ""
    home = str(getattr(thing, "__module__", ""))
    return f"{_HOMES.get(home, home)}.{name}"
