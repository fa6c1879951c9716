"""Checkers of source text: each function returns its findings, or an empty list if the law is kept."""

import ast
import re
from collections.abc import Collection, Iterator

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50

REVISION = re.compile(r"2024-11-05|2025-03-26|2025-06-18|2025-11-25|2026-07-28")
SLEEP_REASON = re.compile(r"#\s*sleeps:\s*\S")


def check_file_length(text: str) -> list[str]:
    """Find a file that is too long."""
    length = len(text.splitlines())
    return [f"{length} lines, at most {MAX_FILE_LINES}"] if length > MAX_FILE_LINES else []


def check_function_lengths(text: str) -> list[str]:
    """Find functions that are too long, from `def` to the last line of the body."""
    findings = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                findings.append(f"line {node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}")
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


_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def names_with(text: str, words: Collection[str]) -> set[str]:
    """Find names and texts of code, not of comments and docstrings, that contain one of the words."""
    if not any(word in text.lower() for word in words):
        return set()
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                docstring.value = None
            case ast.Attribute(value=ast.Name(id="settings") | ast.Attribute(attr="settings"), attr=name):
                found.add(f"settings.{name}")
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                found.update(name.split("."))
            case ast.Constant(value=str(content)):
                found.update(re.findall(r"[\w.]+", content))
    return {name for name in found if not {part.lower() for part in _PARTS.findall(name)}.isdisjoint(words)}
