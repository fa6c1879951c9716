"""Show that every law can be broken: each checker finds a bad sample and passes a good one."""

from textwrap import dedent

import pytest

from tests.architecture.checkers import (
    check_class_names,
    check_class_names_are_unique,
    check_docstring,
    check_exports,
    check_file_length,
    check_folder_sizes,
    check_function_lengths,
    check_imports,
    check_module_name,
    check_module_names_are_unique,
    check_no_exports,
    check_prints,
    check_revisions,
    check_sleeps,
    check_unused_vocabulary,
    check_vocabulary,
)


def function_of(lines: int, keyword: str = "def") -> str:
    return "\n".join([f"{keyword} long():", *["    pass"] * (lines - 1)])


def test_file_length() -> None:
    """A file of 401 lines is found, one of 400 is not."""
    assert check_file_length("x = 1\n" * 400) == []
    assert check_file_length("x = 1\n" * 401) == ["401 lines, at most 400"]


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_function_length(keyword: str) -> None:
    """A function of 51 lines is found, also inside a class; one of 50 is not."""
    inside = "class Outer:\n" + "\n".join(f"    {line}" for line in function_of(51, keyword).splitlines())
    assert check_function_lengths(function_of(50, keyword)) == []
    assert check_function_lengths(function_of(51, keyword)) == ["line 1: long has 51 lines, at most 50"]
    assert check_function_lengths(inside) == ["line 2: long has 51 lines, at most 50"]


LATE = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import A\ndef __getattr__(name): ...\n"
"""A module that loads what it exports when that is asked for."""


@pytest.mark.parametrize(
    ("sample", "finding"),
    [
        pytest.param("", "__all__ is missing, or is not a literal list or tuple of strings", id="missing"),
        pytest.param(
            "__all__ = [*NAMES]", "__all__ is missing, or is not a literal list or tuple of strings", id="built"
        ),
        pytest.param("a = b = 1\n__all__ = ['b', 'a']", "__all__ is not sorted, or names something twice", id="order"),
        pytest.param("a = 1\n__all__ = ['a', 'a']", "__all__ is not sorted, or names something twice", id="twice"),
        pytest.param("from x import A\n__all__ = []", "A is public but not in __all__", id="import-from"),
        pytest.param("import sys\n__all__ = []", "sys is public but not in __all__", id="import"),
        pytest.param("def run(): ...\n__all__ = []", "run is public but not in __all__", id="function"),
        pytest.param("class Tool: ...\n__all__ = []", "Tool is public but not in __all__", id="class"),
        pytest.param("a: int = 1\n__all__ = []", "a is public but not in __all__", id="annotated"),
        pytest.param("__all__ = ['Gone']", "Gone is in __all__ but not bound", id="unbound"),
        pytest.param(f"{LATE}__all__ = []", "A is public but not in __all__", id="late"),
        pytest.param("from p.tool import tool\n__all__ = []", "tool is public but not in __all__", id="like-submodule"),
    ],
)
def test_bad_exports(sample: str, finding: str) -> None:
    """An `__all__` that is missing, unsorted or other than the namespace is found."""
    assert check_exports(sample, "p", {"tool"}) == [finding]


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param("__all__: list[str] = []", id="empty"),
        pytest.param(f"{LATE}__all__ = ['A']", id="late"),
        pytest.param("from x import A, b\n__all__ = ['A', 'b']", id="imports"),
        pytest.param("from __future__ import annotations\nimport sys as _sys\n__all__ = ()", id="private"),
        pytest.param("from . import tool\nfrom p import tool\n__all__ = []", id="submodule"),
        pytest.param("__version__ = '1'\n__all__ = ['__version__']", id="dunder"),
    ],
)
def test_good_exports(sample: str) -> None:
    """Private names, dunders and submodules need no place in `__all__`."""
    assert check_exports(sample, "p", {"tool"}) == []


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_revisions(revision: str) -> None:
    """Each revision is found, in code and in comments; another date is not."""
    assert check_revisions(f"x = 1\ny = '{revision}'  # {revision}") == [f"line 2: spells the revision {revision}"] * 2
    assert check_revisions("y = '2025-01-01'") == []


@pytest.mark.parametrize(
    "sample",
    [
        "time.sleep(1)",
        "await asyncio.sleep(0.01)",
        "await sleep(2 * 60)",
        "await asyncio.sleep(delay=3)",
        "time.sleep(1)  # sleeps:",
    ],
)
def test_bad_sleeps(sample: str) -> None:
    """A fixed wait without a reason is found, however it is spelled."""
    [finding] = check_sleeps(sample)
    assert finding.startswith("line 1: sleeps")


@pytest.mark.parametrize(
    "sample",
    [
        "await asyncio.sleep(0)",
        "await asyncio.sleep(duration)",
        "await asyncio.sleep(settings.delay_seconds * 2)",
        "time.sleep(1)  # sleeps: the clock of another process has no event",
        "await event.wait()",
        "text = 'time.sleep(1)'",
    ],
)
def test_good_sleeps(sample: str) -> None:
    """A yield, a computed wait and a wait with a reason are allowed."""
    assert check_sleeps(sample) == []


@pytest.mark.parametrize("path", ["p/utils.py", "p/helpers.py", "p/manager.py", "p/_util.py", "p/helper/tool.py"])
def test_bad_module_names(path: str) -> None:
    """A module or package without a purpose in its name is found."""
    assert len(check_module_name(path)) == 1


def test_good_module_names() -> None:
    """A noun that only contains such a word is allowed."""
    assert check_module_name("axolotl_core/protocol/utilisation.py") == []


@pytest.mark.parametrize("name", ["BaseTool", "ToolBase", "ToolImpl", "SessionManager", "HelperForTools", "_BaseTool"])
def test_bad_class_names(name: str) -> None:
    """A class named for its place in a hierarchy is found."""
    assert check_class_names(f"class {name}: ...") == [f"line 1: {name} says nothing about a class"]


@pytest.mark.parametrize("name", ["ITool", "DefaultHandler", "Baseline", "Database", "Implementation"])
def test_good_class_names(name: str) -> None:
    """A word that only starts or ends alike is allowed, and so is inheriting from a foreign base."""
    assert check_class_names(f"class {name}(BaseModel): ...") == []


def test_prints() -> None:
    """A call of print is found; the word and a method of that name are not."""
    assert check_prints("def f():\n    print('x')") == ["line 2: prints"]
    assert check_prints("console.print('x')  # print('x')") == []


@pytest.mark.parametrize(
    ("sample", "module"),
    [
        ("import asyncio", "asyncio"),
        ("import asyncio.events as events", "asyncio.events"),
        ("from asyncio import Task", "asyncio.Task"),
        ("from asyncio.events import get_running_loop", "asyncio.events.get_running_loop"),
    ],
)
def test_bad_imports(sample: str, module: str) -> None:
    """A forbidden import is found, however it is written and however deep it stands."""
    assert check_imports(sample, ["asyncio"]) == [f"line 1: imports {module}"]
    assert check_imports(f"if TYPE_CHECKING:\n    {sample}", ["asyncio"]) == [f"line 2: imports {module}"]


def test_good_imports() -> None:
    """A name that only starts alike, a relative import and an allowed part of a forbidden package pass."""
    sample = """
        import asyncio_like
        from .asyncio import x
        from p.layers import audit
        from p import layers
    """
    assert check_imports(dedent(sample), ["asyncio", "p"], allowed=["p.layers"]) == []
    assert check_imports("from p import settings", ["p"], allowed=["p.layers"]) == ["line 1: imports p.settings"]


def test_imports_for_annotations() -> None:
    """Imports for annotations pass where only run time counts; the same import elsewhere does not."""
    sample = "if TYPE_CHECKING:\n    from p import a\nfrom p import b"
    assert check_imports(sample, ["p"], annotations=False) == ["line 3: imports p.b"]


def test_exports_outside_the_roots() -> None:
    """An `__all__` in a module that is not a root is found."""
    assert check_no_exports("__all__ = ['a']") == ["has an __all__, which only package roots have"]
    assert check_no_exports("names = ['a']") == []


def test_folder_sizes() -> None:
    """A folder of 16 modules is found; one of 15 is not, and neither are `__init__` and subfolders counted."""
    modules = [f"p/{number}.py" for number in range(15)]
    assert check_folder_sizes([*modules, "p/__init__.py", "p/__main__.py", "p/q/a.py"]) == []
    assert check_folder_sizes([*modules, "p/last.py"]) == ["p has 16 modules, at most 15"]


def test_unique_module_names() -> None:
    """Two modules of one package with the same name are found; those of two packages and recurring names are not."""
    assert check_module_names_are_unique(["p/a/store.py", "p/b/store.py"]) == [
        "store is the name of p/a/store.py, p/b/store.py"
    ]
    good = ["p/a/store.py", "q/store.py", "p/a/assembly.py", "p/b/assembly.py", "p/quotas.py", "p/b/quotas.py"]
    assert check_module_names_are_unique([*good, "p/quotas/rule.py", "p/__init__.py", "p/a/__init__.py"]) == []


def test_unique_class_names() -> None:
    """Two public classes with the same name are found; private and inner ones are not."""
    assert check_class_names_are_unique({"a.py": "class Report: ...", "b.py": "class Report: ..."}) == [
        "Report is a class in a.py, b.py"
    ]
    inner = "class _Report: ...\nclass Other:\n    class Inner: ..."
    assert check_class_names_are_unique({"a.py": inner, "b.py": inner.replace("Other", "Another")}) == []


def test_vocabulary() -> None:
    """A word that the glossary does not list is found, in modules and folders; a plural counts as its singular."""
    assert check_vocabulary(["p/doors/tool_crew.py"], ["tool"]) == [
        "p/doors/tool_crew.py: crew is not in the glossary",
        "p/doors/tool_crew.py: doors is not in the glossary",
    ]
    assert check_vocabulary(["p/tools/stream_tool.py", "p/tools/__init__.py"], ["tools", "stream"]) == []


def test_unused_vocabulary() -> None:
    """A plain word that names nothing is found."""
    assert check_unused_vocabulary(["p/stream_tool.py"], ["stream", "tools", "crew"]) == ["crew names nothing any more"]


@pytest.mark.parametrize(
    ("sample", "finding"),
    [
        pytest.param("x = 1", "has no module docstring", id="missing"),
        pytest.param('"""What waits."""', "its docstring does not begin with a noun phrase: What waits.", id="riddle"),
        pytest.param(f'"""{"x" * 101}"""', "its docstring begins with 101 characters, at most 100", id="long"),
    ],
)
def test_bad_docstrings(sample: str, finding: str) -> None:
    """A docstring that is missing, too long, or a riddle is found."""
    [found] = check_docstring(sample)
    assert found.startswith(finding)


def test_good_docstrings() -> None:
    """A noun phrase is accepted, also one that begins like a question word, and with more lines below it."""
    assert check_docstring('"""Whole numbers: a table."""') == []
    assert check_docstring(f'"""A table.\n\n{"x" * 120}\n"""') == []
