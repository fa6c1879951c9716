"""`axolotl check`: mistakes in the definitions of features, each with its place and what to write instead."""

import pytest

from tests.cli.conftest import CommandLine

HEAD = """\
from dependency_injector import containers, providers
from pydantic import BaseModel, Field
from axolotl_core import IPrompt, IResource, ITool, NoArguments, ToolContext, prompt, resource, tool

class A(BaseModel):
    x: int = Field(1, description="X.")

"""
TOOL = """\
class T(ITool[A, int]):
    name = "t"
    description = "T."
    {line}
    async def execute(self, arguments: A, context: ToolContext) -> int:
        return arguments.x

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(T))
"""
LINE = HEAD.count("\n") + 4


def errors_of(cli: CommandLine, source: str, *words: str) -> list[str]:
    """Check a file and return its errors."""
    cli.write("own.py", HEAD + source)
    answer = cli("check", "own.py")
    assert answer.code == 2, answer.stdout
    return [line.removeprefix("error").strip() for line in answer.stdout.splitlines() if line.startswith("error")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('timeout_seconds = "3"', "timeout_seconds must be a number above 0, not '3'"),
        ("timeout_seconds = 0", "timeout_seconds must be a number above 0, not 0"),
        ("timeout_seconds = -1", "timeout_seconds must be a number above 0, not -1"),
        ("max_concurrency = 0", "max_concurrency must be a whole number from 1 up, not 0"),
        ("max_concurrency = True", "max_concurrency must be a whole number from 1 up, not True"),
        ("queue_limit = -1", "queue_limit must be a whole number from 0 up, not -1"),
        ("retry = 3", "retry must be a Retry or None, not 3"),
        ("breaker = True", "breaker must be a Breaker or None, not True"),
        ('scopes = "payments"', """scopes must be a set of strings, such as {"a"}, not 'payments'"""),
        ("meta = []", "meta must be a mapping, not []"),
        ('annotations = {"readOnlyHint": True}', "annotations must be a ToolAnnotations, not {'readOnlyHint': True}"),
        ('execution = "threads"', """execution must be "loop", "thread" or "process", not 'threads'"""),
        ("task_support = True", 'task_support must be "forbidden", "optional" or "required", not True'),
        ('icons = "x.png"', "icons must be a tuple of Icon, not 'x.png'"),
        ('requires_approval = "yes"', "requires_approval must be True or False or an Approval, not 'yes'"),
        ("description = None", "description must be a string, not None"),
        ("timeout = 3", "timeout = 3 has no effect; did you mean timeout_seconds?"),
        ('exection = "thread"', "exection = 'thread' has no effect; did you mean execution?"),
    ],
)
def test_attributes(cli: CommandLine, line: str, problem: str) -> None:
    """A wrong value and a misspelled name are errors with the file, the line and what is expected."""
    [error] = errors_of(cli, TOOL.format(line=line))
    assert error.startswith(f"T 't' (own.py:{LINE}): {problem}")


def test_all_at_once(cli: CommandLine) -> None:
    """All mistakes of all features are reported together, and a server with them does not start."""
    source = TOOL.format(line="retry = 3; timeout = 3").replace("providers.Singleton(T)", "providers.Singleton(T), f")
    function = "@tool(timeout_seconds=0)\ndef f() -> str:\n    '''F.'''\n    return ''\n\n"
    errors = errors_of(cli, function + source)
    assert [error.partition(" (")[0] for error in errors] == ["T 't'", "T 't'", "f() 'f'"]
    answer = cli("list", "own.py")
    assert (answer.code, answer.stderr.count("Error: ")) == (2, 3)


OTHERS = """\
class P(IPrompt[NoArguments]):
    name = "p"
    description = "P."
    timeout = 3
    async def render(self, arguments, context): return ""

class R(IResource):
    name = "r"
    uri = "a://b"
    description = "R."
    size = "big"
    async def read(self, context): return ""

class Container(containers.DeclarativeContainer):
    prompts = providers.List(providers.Singleton(P))
    resources = providers.List(providers.Singleton(R))
"""


def test_prompts_and_resources(cli: CommandLine) -> None:
    """Prompts and resources are checked in the same way."""
    errors = errors_of(cli, OTHERS)
    assert errors[0].startswith(f"P 'p' (own.py:{LINE}): timeout = 3 has no effect; did you mean timeout_seconds?")
    assert errors[1] == f"R 'r' (own.py:{LINE + 7}): size must be a whole number from 0 up, not 'big'"


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        ("@tool(timeout=3)", "@tool has no option timeout; did you mean timeout_seconds?"),
        ("@prompt(exection='x')", "@prompt has no option exection; did you mean execution?"),
        ("@resource('a://b', mimetype='x')", "@resource has no option mimetype; did you mean mime_type?"),
    ],
)
def test_options(cli: CommandLine, use: str, problem: str) -> None:
    """An unknown option of a decorator is reported with the nearest one."""
    [error] = errors_of(cli, f"{use}\ndef f() -> str:\n    '''F.'''\n    return ''\n")
    assert problem in error


PLAIN = """\
import threading

class T(ITool[A, bool]):
    name = "t"
    description = "T."
    def execute(self, arguments, context):
        return threading.current_thread() is threading.main_thread()

class Async(T):
    name = "a"
    async def execute(self, arguments, context):
        return threading.current_thread() is threading.main_thread()

class P(IPrompt[NoArguments]):
    name = "p"
    description = "P."
    def render(self, arguments, context):
        return threading.current_thread().name

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(T), providers.Singleton(Async))
    prompts = providers.List(providers.Singleton(P))
"""


def test_plain_methods(cli: CommandLine) -> None:
    """A plain `execute` or `render` runs in a thread; a subclass with an async one runs on the event loop."""
    cli.write("own.py", HEAD + PLAIN)
    assert cli("check", "own.py").stdout == "own.py: 2 tools, 1 prompt, no problems\n"
    assert cli("call", "own.py", "t").stdout == "false\n"
    assert cli("call", "own.py", "a").stdout == "true\n"
    assert "axolotl-tool" in cli("prompt", "own.py", "p").stdout


def test_plain_methods_on_the_loop(cli: CommandLine) -> None:
    """A plain `execute` cannot be combined with `execution = "loop"`."""
    source = TOOL.format(line='execution = "loop"').replace("async def", "def")
    [error] = errors_of(cli, source)
    assert error == (
        f"T 't' (own.py:{LINE}): execution is \"loop\", but its code is a plain function: remove execution to run it "
        "in a thread, or write async def"
    )


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (
            "tols = providers.List(providers.Singleton(T))",
            "The container has 'tols', which is not a role; did you",
        ),
        ("tools = [T()]", "Container.tools is of type list, which is not a provider: write tools = providers.List("),
    ],
)
def test_roles(cli: CommandLine, tools: str, problem: str) -> None:
    """A misspelled role, and one that is not a provider, are named."""
    source = TOOL.format(line="").replace("tools = providers.List(providers.Singleton(T))", tools)
    [error] = errors_of(cli, source)
    assert error.startswith(problem)


def test_constructors(cli: CommandLine) -> None:
    """A constructor without a service, and a class without `execute`, are named with what to write."""
    source = TOOL.format(line="def __init__(self, repo): ...")
    [error] = errors_of(cli, source)
    assert error == (
        f"T (own.py:{LINE - 3}) needs repo: add a provider for it to the container, and write "
        "providers.Singleton(T, repo=repo)"
    )
    [error] = errors_of(cli, TOOL.format(line="").replace("execute", "exec"))
    assert error == f"T (own.py:{LINE - 3}) does not define execute: write async def execute(self, …)"


@pytest.mark.parametrize("name", ["GetOrder", "g" * 41])
def test_unusual_names(cli: CommandLine, name: str) -> None:
    """A name that is long or has capitals is a warning."""
    cli.write("own.py", HEAD + TOOL.format(line="").replace('name = "t"', f'name = "{name}"'))
    answer = cli("check", "own.py")
    assert answer.code == 0
    assert (
        f"Tool '{name}' has a name that models easily get wrong: use at most 40 lower-case characters" in answer.stdout
    )
