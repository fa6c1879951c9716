"""Checkers of source text: each function returns its findings, or an empty list if the law is kept."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_FOLDER_MODULES = 15
MAX_DOCSTRING_LINE = 100

REVISION = re.compile(r"2024-11-05|2025-03-26|2025-06-18|2025-11-25|2026-07-28")
VAGUE_MODULE = re.compile(r"_?(utils?|helpers?|managers?)")
VAGUE_CLASS = re.compile(r"_*((Base|Impl|Manager|Helper)([A-Z0-9].*)?|.*(Base|Impl|Manager|Helper))")
RIDDLE = re.compile(r"(what|how|who|whom|whose|which|that|where|whether)\b", re.IGNORECASE)
SLEEP_REASON = re.compile(r"#\s*sleeps:\s*\S")


def check_file_length(text: str, limit: int = MAX_FILE_LINES) -> list[str]:
    """Find a file that is too long."""
    length = len(text.splitlines())
    return [f"{length} lines, at most {limit}"] if length > limit else []


def check_function_lengths(text: str) -> list[str]:
    """Find functions that are too long, from `def` to the last line of the body."""
    findings = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                findings.append(f"line {node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}")
    return findings


def check_exports(text: str, package: str, submodules: Collection[str] = ()) -> list[str]:
    """Find an `__all__` that is missing, unsorted, or other than the public names that the package binds."""
    tree = ast.parse(text)
    exported = _declared_exports(tree)
    if exported is None:
        return ["__all__ is missing, or is not a literal list or tuple of strings"]
    bound = {name for name in _bound_names(tree, package, submodules) if not name.startswith("_")}
    public = {name for name in exported if not name.startswith("__")}
    findings = []
    if exported != sorted(set(exported)):
        findings.append("__all__ is not sorted, or names something twice")
    findings.extend(f"{name} is public but not in __all__" for name in sorted(bound - public))
    findings.extend(f"{name} is in __all__ but not bound" for name in sorted(public - bound))
    return findings


def check_no_exports(text: str) -> list[str]:
    """Find an `__all__`, which only package roots have."""
    declares = "__all__" in text and _declared_exports(ast.parse(text)) is not None
    return ["has an __all__, which only package roots have"] if declares else []


def check_folder_sizes(paths: Collection[str], limit: int = MAX_FOLDER_MODULES) -> list[str]:
    """Find folders with too many modules, not counting `__init__` and `__main__`."""
    sizes = Counter(str(PurePosixPath(path).parent) for path in paths if not _is_dunder(path))
    return [
        f"{folder} has {count} modules, at most {limit}" for folder, count in sorted(sizes.items()) if count > limit
    ]


def check_module_names_are_unique(paths: Collection[str]) -> list[str]:
    """Find modules of one package that share a name; `assembly`, `routes` and the names of folders may recur."""
    folders = {folder for path in paths for folder in PurePosixPath(path).parent.parts}
    homes: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        name = PurePosixPath(path).stem
        if not (_is_dunder(path) or name in {"assembly", "routes"} or name in folders):
            homes.setdefault((PurePosixPath(path).parts[0], name), []).append(path)
    return [f"{name} is the name of {', '.join(homes)}" for (_, name), homes in homes.items() if len(homes) > 1]


def check_class_names_are_unique(texts: Mapping[str, str]) -> list[str]:
    """Find public classes at the top of a module that share a name."""
    homes: dict[str, list[str]] = {}
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path)
    return [f"{name} is a class in {', '.join(paths)}" for name, paths in sorted(homes.items()) if len(paths) > 1]


def check_vocabulary(paths: Collection[str], words: Collection[str]) -> list[str]:
    """Find words in names of modules and folders that the glossary does not list."""
    known = {_singular(word) for word in words}
    findings = []
    for path in sorted(paths):
        parts = PurePosixPath(path).with_suffix("").parts[1:]
        unknown = {word for part in parts if not _is_dunder(part) for word in part.split("_") if word}
        findings += [
            f"{path}: {word} is not in the glossary" for word in sorted(unknown) if _singular(word) not in known
        ]
    return findings


def check_unused_vocabulary(paths: Collection[str], plain: Collection[str]) -> list[str]:
    """Find plain words in the glossary that no name of a module or folder uses."""
    names = {part for path in paths for part in PurePosixPath(path).with_suffix("").parts[1:]}
    used = {_singular(word) for name in names for word in name.split("_")}
    return [f"{word} names nothing any more" for word in plain if _singular(word) not in used]


def check_docstring(text: str) -> list[str]:
    """Find a module docstring whose first line is missing, too long, or does not begin with a noun phrase."""
    docstring = ast.get_docstring(ast.parse(text))
    if not docstring:
        return ["has no module docstring"]
    first = docstring.splitlines()[0]
    findings = []
    if len(first) > MAX_DOCSTRING_LINE:
        findings.append(f"its docstring begins with {len(first)} characters, at most {MAX_DOCSTRING_LINE}: {first}")
    if RIDDLE.match(first):
        findings.append(f"its docstring does not begin with a noun phrase: {first}")
    return findings


def check_revisions(text: str) -> list[str]:
    """Find protocol revisions that are spelled out."""
    return [
        f"line {number}: spells the revision {match.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for match in REVISION.finditer(line)
    ]


def check_sleeps(text: str) -> list[str]:
    """Find sleeps of a constant length that is not zero and has no `# sleeps: <reason>` beside it."""
    if "sleep" not in text:  # to parse a file takes much longer than to search it
        return []
    lines = text.splitlines()
    findings = []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and _called_name(node) == "sleep" and _waits_for_a_constant(node)):
            continue
        if not any(SLEEP_REASON.search(line) for line in lines[node.lineno - 1 : node.end_lineno]):
            findings.append(f"line {node.lineno}: sleeps; await an event, or say why with `# sleeps: <reason>`")
    return findings


def check_module_name(path: str) -> list[str]:
    """Find a module or package whose name says nothing."""
    parts = PurePosixPath(path).with_suffix("").parts
    return [f"{part} says nothing about a module" for part in parts if VAGUE_MODULE.fullmatch(part)]


def check_class_names(text: str) -> list[str]:
    """Find classes that are named for their place in a hierarchy instead of their purpose."""
    if not re.search(r"class \w*(Base|Impl|Manager|Helper)", text):
        return []
    return [
        f"line {node.lineno}: {node.name} says nothing about a class"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.fullmatch(node.name)
    ]


def check_prints(text: str) -> list[str]:
    """Find calls of `print`."""
    if "print" not in text:
        return []
    return [
        f"line {node.lineno}: prints"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def check_imports(
    text: str, forbidden: Collection[str], allowed: Collection[str] = (), *, annotations: bool = True
) -> list[str]:
    """Find imports, at any depth, of the forbidden modules, except for the allowed ones and perhaps annotations."""
    if not any(name.partition(".")[0] in text for name in forbidden):
        return []
    tree = ast.parse(text)
    typed = () if annotations else {line for line, _ in _imported_modules(ast.Module(list(_type_blocks(tree)), []))}
    return [
        f"line {line}: imports {module}"
        for line, module in _imported_modules(tree)
        if line not in typed and _is_within(module, forbidden) and not _is_within(module, allowed)
    ]


def _is_dunder(path: str) -> bool:
    return PurePosixPath(path).stem in {"__init__", "__main__"}


def _singular(word: str) -> str:
    return word.removesuffix("s")


def _declared_exports(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value):
                break
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value):
                break
    else:
        return None
    names = [item.value for item in value.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return names if len(names) == len(value.elts) else None


def _bound_names(tree: ast.Module, package: str, submodules: Collection[str]) -> Iterator[str]:
    late = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    for node in tree.body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body) if late:
                yield from _bound_names(ast.Module(body, []), package, submodules)
            case ast.ImportFrom(module="typing") if late:
                continue  # such a module says what it binds by types alone
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.ImportFrom(module=module, names=names, level=level):
                own = (level == 1 and module is None) or (level == 0 and module == package)
                yield from (name.asname or name.name for name in names if not (own and name.name in submodules))
            case ast.Import(names=names):
                yield from (name.asname or name.name.partition(".")[0] for name in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _called_name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def _waits_for_a_constant(call: ast.Call) -> bool:
    durations = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg in {"delay", "seconds"})]
    numbers = [part for duration in durations for part in ast.walk(duration)]
    if any(isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in numbers):
        return False
    return any(isinstance(part, ast.Constant) and part.value not in (0, None) for part in numbers)


def _imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                # `from package import module` imports both; the longer name says which.
                yield from ((node.lineno, f"{module}.{name.name}") for name in names)


def _type_blocks(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from node.body


def _is_within(module: str, packages: Collection[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
