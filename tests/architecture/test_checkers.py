"""Show that every law can be broken: each checker finds a bad sample and passes a good one."""

from textwrap import dedent

import pytest

from tests.architecture.checkers import (
    check_file_length,
    check_function_lengths,
    check_imports,
    check_revisions,
    check_sleeps,
    names_with,
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


def test_names() -> None:
    """Names, imports and texts are found by their parts; docstrings and other words are not."""
    code = '''
        """A skill."""
        from axolotl_server.extensions.skills import one
        import taskbook

        def ask(task_id, settings):
            """Ask about a skill."""
            CannotAskForApproval("a skill", consoles=settings.skills)
    '''
    assert names_with(dedent(code), {"skill", "skills", "task"}) == {"skills", "skill", "task_id", "settings.skills"}
    assert names_with("x = 1", {"skill"}) == set()
