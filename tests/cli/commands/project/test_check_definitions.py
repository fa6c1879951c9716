"""`axolotl check`: mistakes in the definitions of features, each with its place and what to write instead."""

import asyncio
import sys

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server import connect
from axolotl_server.hosting.container_loading import load_container
from tests.cli.conftest import CommandLine

HEAD = """\
from dependency_injector import containers, providers
from pydantic import BaseModel, Field
from axolotl_core import IPrompt, IResource, ITool, NoArguments, Context, prompt, resource, tool

class A(BaseModel):
    x: int = Field(1, description="X.")

"""
TOOL = """\
class T(ITool[A, int]):
    name = "t"
    description = "T."
    {line}
    async def execute(self, arguments: A, context: Context) -> int:
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
        ('timeout_seconds = "3"', "timeout_seconds must be a valid number, not '3'"),
        ("timeout_seconds = 0", "timeout_seconds must be greater than 0, not 0"),
        ("timeout_seconds = -1", "timeout_seconds must be greater than 0, not -1"),
        ("max_concurrency = 0", "max_concurrency must be greater than or equal to 1, not 0"),
        ("max_concurrency = True", "max_concurrency must be a valid integer, not True"),
        ("queue_limit = -1", "queue_limit must be greater than or equal to 0, not -1"),
        ("retry = 3", "retry must be an instance of Retry, not 3"),
        ("breaker = True", "breaker must be an instance of Breaker, not True"),
        ('scopes = "payments"', "scopes must be a valid frozenset, not 'payments'"),
        ("meta = []", "meta must be a valid dictionary, not []"),
        (
            'annotations = {"readOnlyHint": True}',
            "annotations must be an instance of ToolAnnotations, not {'readOnlyHint': True}",
        ),
        ('execution = "threads"', "execution must be 'loop', 'thread' or 'process', not 'threads'"),
        ("task_support = True", "task_support must be 'forbidden', 'optional', 'required' or 'detached', not True"),
        ('icons = "x.png"', "icons must be a valid tuple, not 'x.png'"),
        (
            'requires_approval = "yes"',
            "requires_approval must be a valid boolean or an instance of Approval, not 'yes'",
        ),
        ("description = None", "description must be a valid string, not None"),
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
    assert errors[1] == f"R 'r' (own.py:{LINE + 7}): size must be a valid integer, not 'big'"


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        ("@tool(timeout=3)", f"@tool (own.py:{LINE - 3}) has no option timeout; did you mean timeout_seconds?"),
        ("@prompt(exection='x')", f"@prompt (own.py:{LINE - 3}) has no option exection; did you mean execution?"),
        (
            "@resource('a://b', mimetype='x')",
            f"@resource (own.py:{LINE - 3}) has no option mimetype; did you mean mime_type?",
        ),
    ],
)
def test_options(cli: CommandLine, use: str, problem: str) -> None:
    """An unknown option of a decorator is reported with its line and the nearest one."""
    [error] = errors_of(cli, f"{use}\ndef f() -> str:\n    '''F.'''\n    return ''\n")
    assert error == problem


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
            f"The container has 'tols' (own.py:{LINE + 5}), which is not a role; did you mean 'tools'?",
        ),
        (
            "tools = [T()]",
            f"Container.tools (own.py:{LINE + 5}) is of type list, which is not a provider: write tools = "
            "providers.List(providers.Singleton(MyTool))",
        ),
        (
            "tools = providers.List(providers.Singleton(T))\n    prompts = []",
            f"Container.prompts (own.py:{LINE + 6}) is of type list, which is not a provider: write prompts = "
            "providers.List(providers.Singleton(MyPrompt))",
        ),
    ],
)
def test_roles(cli: CommandLine, tools: str, problem: str) -> None:
    """A misspelled role, and one that is not a provider, are named."""
    source = TOOL.format(line="").replace("tools = providers.List(providers.Singleton(T))", tools)
    [error] = errors_of(cli, source)
    assert error == problem


@pytest.mark.parametrize(("name", "role"), [("promts", "prompts"), ("helth_checks", "health_checks")])
def test_misspelled_roles_beside_others(cli: CommandLine, name: str, role: str) -> None:
    """A misspelled role beside valid ones is a warning with its line, in `check` and at every start."""
    more = (
        f"tools = providers.List(providers.Singleton(T))\n    {name} = providers.List()\n    tol = providers.Object(1)"
    )
    cli.write("own.py", HEAD + TOOL.format(line="").replace("tools = providers.List(providers.Singleton(T))", more))
    warning = f"The container has '{name}' (own.py:{LINE + 6}), which is not a role; did you mean '{role}'?"
    answer = cli("check", "own.py")
    assert answer.code == 0
    assert [line.partition(" ")[2] for line in answer.stdout.splitlines() if line.startswith("warning")] == [warning]
    assert warning in cli("call", "own.py", "t", "x=1").stderr


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


CONTAINER = "class Container(containers.DeclarativeContainer):\n    tools = providers.List({tools})\n"
FIRST = LINE - 3
"""The line after the head."""


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "class T(ITool):\n    async def execute(self, arguments, context): ...\n",
            f"T (own.py:{FIRST}) has no input and output: write class T(ITool[Input, Output])",
        ),
        (
            "class P(IPrompt):\n    async def render(self, arguments, context): ...\n",
            f"P (own.py:{FIRST}) has no arguments: write class P(IPrompt[Arguments])",
        ),
        (
            "class T(ITool[int, int]): ...\n",
            f"The input of T (own.py:{FIRST}) is <class 'int'>; the first type argument must be a pydantic model "
            "(NoArguments for a tool without arguments, SchemaTool for a raw JSON Schema)",
        ),
        (
            "import nothing_there\n",
            f"File own.py was found, but importing it failed (own.py:{FIRST}): ModuleNotFoundError: No module named "
            "'nothing_there'",
        ),
        (
            "def hello(): ...\n" + CONTAINER.format(tools="providers.Object(hello)"),
            f"hello() (own.py:{FIRST}) is not a tool: subclass ITool or use @tool",
        ),
        (
            TOOL.format(line="").replace("Singleton(T)", "Object(T)"),
            f"The class T (own.py:{FIRST}) is not a tool: register an instance, not the class",
        ),
        (
            TOOL.format(line="").replace('name = "t"', ""),
            f'T (own.py:{FIRST}) has no name: write name = "t" in the class',
        ),
        (
            TOOL.format(line="").replace("providers.Singleton(T)", "providers.Singleton(T), providers.Singleton(T)"),
            f"Two tools have the same name: 't' (own.T, own.py:{FIRST}) and 't' (own.T, own.py:{FIRST})",
        ),
        (
            TOOL.format(line="def __init__(self, repo): ...").replace("(T)", "(T, rpo=providers.Object(1))"),
            f"T (own.py:{FIRST}) has no parameter rpo; did you mean 'repo'?",
        ),
        (
            "def make(): raise ValueError('no')\n" + CONTAINER.format(tools="providers.Callable(make)"),
            f"A provider of the container failed (own.py:{FIRST}): ValueError: no",
        ),
        (
            "def begin(): raise ConnectionError('no')\n"
            + TOOL.format(line="")
            + "    database = providers.Resource(begin)\n",
            f"A resource of the container failed to start (database) (own.py:{FIRST}): ConnectionError: no",
        ),
    ],
)
def test_places(cli: CommandLine, source: str, problem: str) -> None:
    """Every mistake is reported once with its line, by `check`, at the start, and to tests that connect."""
    assert_reported(cli, source, problem)


UNDEFINED = (
    "an annotation names Missing, which is not defined: define it, or import it, in the same module (not in a function "
    "or under TYPE_CHECKING)"
)
PAGE = """\
from typing import Generic, TypeVar
X = TypeVar("X")
class Page(BaseModel, Generic[X]):
    items: list[X]
"""
PARTIAL = 'class Partial(BaseModel):\n    other: "Missing"\n'
NEEDY = """\
class Orders:
    def __init__(self, stock=None): ...
class Stock:
    def __init__(self, orders=None): ...
"""
CYCLE = """\
class Container(containers.DeclarativeContainer):
    orders = providers.Singleton(Orders)
    stock = providers.Singleton(Stock, orders=orders)
    orders.add_kwargs(stock=stock)
    tools = providers.Callable(list, orders)
"""
UNSET = """\
class Inner(containers.DeclarativeContainer):
    database = providers.Dependency()
    tools = providers.List(database)

class Container(containers.DeclarativeContainer):
    inner = providers.Container(Inner)
"""


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        pytest.param(
            TOOL.format(line="").replace("return", "yield"),
            f"T.execute (own.py:{LINE + 1}) is an asynchronous generator: make the tool a subclass of "
            "IStreamTool[Input, Item] with async def stream",
            id="a generator",
        ),
        pytest.param(
            TOOL.format(line="").replace(", context: Context", ""),
            f"T.execute (own.py:{LINE + 1}) is called with arguments and context, but has other parameters: write "
            "async def execute(self, arguments, context)",
            id="a missing context",
        ),
        pytest.param(
            PAGE + TOOL.format(line="").replace("ITool[A, int]", "ITool[Page, Page]"),
            f"T (own.py:{FIRST + 4}): Page is generic, and its type is left open: write for example Page[int] instead, "
            "or the name of a class like class MyPage(Page[int])",
            id="a generic model",
        ),
        pytest.param(
            PARTIAL + TOOL.format(line="").replace("ITool[A", "ITool[Partial"),
            f"Tool 't' (own.py:{FIRST + 2}) cannot be compiled: {UNDEFINED}",
            id="an undefined type in an input",
        ),
        pytest.param(
            PARTIAL + TOOL.format(line="").replace("A, int]", "A, list[Partial]]"),
            f"Tool 't' (own.py:{FIRST + 2}) cannot be compiled: {UNDEFINED}",
            id="an undefined type in an output",
        ),
        pytest.param(
            PARTIAL
            + "class P(IPrompt[Partial]):\n    name = 'p'\n    def render(self, arguments, context): ...\n"
            + CONTAINER.replace("tools", "prompts", 1).format(tools="providers.Singleton(P)"),
            f"'p' (own.py:{FIRST + 2}) cannot be used: {UNDEFINED}",
            id="an undefined type in a prompt",
        ),
        pytest.param(
            '@tool\ndef f(x: "Missing") -> str: ...\n' + CONTAINER.format(tools="providers.Object(f)"),
            f"f (own.py:{FIRST}): {UNDEFINED}",
            id="an undefined parameter",
        ),
        pytest.param(
            "@tool\ndef f(context) -> str: ...\n" + CONTAINER.format(tools="providers.Object(f)"),
            f"f(context) (own.py:{FIRST}): annotate the parameter; its schema is derived from its type (for the "
            "context of the call, write context: Context)",
            id="a context without its type",
        ),
        pytest.param(
            NEEDY + CYCLE,
            f"Providers of the container need each other: Orders (own.py:{FIRST}) needs Stock (own.py:{FIRST + 2}) "
            "needs Orders; leave one of them out, or pass the provider itself, such as orders.provider, and call it "
            "later",
            id="a cycle",
        ),
        pytest.param(
            UNSET,
            f'Container "Container" has undefined dependencies: "Container.inner.database" (own.py:{FIRST + 1}): pass '
            "them when the container is made, or override them",
            id="an unset dependency",
        ),
    ],
)
def test_remedies(cli: CommandLine, source: str, problem: str) -> None:
    """Code that cannot run as it is written is found before the first call, with its line and what to write."""
    assert_reported(cli, source, problem)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from Python 3.12 on, pydantic reads typing.TypedDict")
def test_typed_dict_of_another_module(cli: CommandLine) -> None:
    """Before Python 3.12, `typing.TypedDict` is refused with the module to import it from."""
    written = "from typing import TypedDict\nclass D(TypedDict):\n    n: int\n"
    assert_reported(
        cli,
        written + TOOL.format(line="").replace("A, int]", "A, D]"),
        f"Tool 't' (own.py:{FIRST + 3}) cannot be compiled: before Python 3.12, TypedDict must come from "
        "typing_extensions, not from typing",
    )


def assert_reported(cli: CommandLine, source: str, problem: str) -> None:
    """Expect the problem from `check`, at the start, and in tests that connect."""
    assert errors_of(cli, source) == [problem]
    sys.modules.pop("own", None)
    answer = cli("serve", "own.py")
    assert (answer.code, answer.stderr) == (2, f"Error: {problem}\n")
    with pytest.raises(ConfigurationError) as raised:
        asyncio.run(connected("own.py"))
    assert list(raised.value.findings) == [problem]


async def connected(target: str) -> None:
    async with connect(load_container(target)):
        pass


def test_misspelled_files(cli: CommandLine) -> None:
    """A misspelled file is reported with the nearest one."""
    cli.write("greeter.py", "")
    answer = cli("check", "greter.py")
    assert answer.code == 2
    assert "There is no file greter.py; did you mean greeter.py?" in answer.stdout


LATER = """\
class Bad(ITool[A, int]):
    name = "bad"
    description = "B."
    {line}
    async def execute(self, arguments, context): return 1

class Add:
    def __init__(self, registry): self.registry = registry

    @tool
    async def add(self) -> str:
        "Add."
        self.registry.register(Bad())
        return "added"

class Container(containers.DeclarativeContainer):
    tool_registry = providers.Singleton(ToolRegistry)
    adder = providers.Singleton(Add, tool_registry)
    tools = providers.Callable(tools_of, adder)
"""


@pytest.mark.parametrize(
    "line", ["meta = []", 'annotations = {"readOnlyHint": True}', "icons = 'x'", "title = 3", "input_schema = 3"]
)
def test_tools_registered_later(cli: CommandLine, line: str) -> None:
    """A broken tool that is registered at run time is refused, and the list of tools stays available."""
    head = HEAD.replace("import IPrompt", "import ToolRegistry, tools_of, IPrompt")
    cli.write("own.py", head + LATER.replace("{line}", line))

    async def listed() -> list[str]:
        async with connect(load_container("own.py")) as client:
            assert (await client.call("add")).is_error
            return [one["name"] for one in await client.list_tools()]

    assert asyncio.run(listed()) == ["add"]


@pytest.mark.parametrize("name", ["GetOrder", "g" * 41])
def test_unusual_names(cli: CommandLine, name: str) -> None:
    """A name that is long or has capitals is a warning."""
    cli.write("own.py", HEAD + TOOL.format(line="").replace('name = "t"', f'name = "{name}"'))
    answer = cli("check", "own.py")
    assert answer.code == 0
    assert (
        f"Tool '{name}' has a name that models easily get wrong: use at most 40 lower-case characters" in answer.stdout
    )


def test_containers_inside_containers_are_not_misspelled_roles(cli: CommandLine) -> None:
    """A container below another may have a name that resembles a role."""
    cli.write(
        "shop.py",
        "from dependency_injector import containers, providers\n"
        "from tests.support.containers.command_containers import Container as Inner\n\n"
        "class Container(containers.DeclarativeContainer):\n"
        "    sources = providers.Container(Inner)\n"
        "    tools = providers.List()\n",
    )
    assert "did you mean 'resources'" not in cli("check", "shop.py").stdout
