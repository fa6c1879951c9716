"""`axolotl check`."""

import json
from textwrap import dedent
from typing import Any

import pytest

from tests.cli.conftest import CommandLine

WRONG = """
    from dependency_injector import containers, providers
    from pydantic import BaseModel

    from axolotl_core import ITool
    from axolotl_core.tools.schema_tool import SchemaTool


    class Input(BaseModel):
        number: int


    class First(ITool[Input, str]):
        name = "same"

        async def execute(self, arguments, context):
            return ""


    class Second(First):
        name = "SAME"


    class Unnamed(ITool[Input, str]):
        async def execute(self, arguments, context):
            return ""


    class BadHeader(First):
        name = "header"
        input_schema = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}


    class Container(containers.DeclarativeContainer):
        settings = providers.Object({"limits": {"threads": 0}})
        layers = providers.List(providers.Object("no layer"))
        tools = providers.List(*map(providers.Singleton, (First, Second, Unnamed, BadHeader)), providers.Object(5))
"""

IMPROVABLE = """
    from dependency_injector import containers, providers
    from pydantic import BaseModel, Field

    from axolotl_core import tool


    class Street(BaseModel):
        name: str
        number: int = Field(description="Its number.")
        across: "list[Street]" = Field([], description="Those that cross it.")


    @tool(name="a name with spaces", execution="loop")
    def plain(street: Street, town: str) -> str:
        return town


    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Object(plain))
"""


FEATURES = """
    from dependency_injector import containers, providers

    from axolotl_core import IPrompt, IResource, IResourceTemplate, NoArguments, prompt, resource, tool
    from axolotl_server.extension import Extension


    @tool(app="ui://absent")
    async def show() -> str:
        \"\"\"Show a page.\"\"\"
        return ""


    @prompt(execution="loop")
    def bare(word: str) -> str:
        return word


    @resource("config://app", execution="loop")
    def config() -> str:
        return ""


    @resource("users://{name}")
    async def user(name: str) -> str:
        return name


    class Nameless(IPrompt[NoArguments]):
        async def render(self, arguments, context):
            return ""


    class Placeless(IResource):
        name = "placeless"
        uri = "nowhere"

        async def read(self, context):
            return ""


    class Misfit(IResourceTemplate[NoArguments]):
        name = "misfit"
        uri_template = "misfits://{size}"

        async def read(self, variables, context):
            return ""


    class Receipts(Extension):
        identifier = "receipts"


    class Container(containers.DeclarativeContainer):
        settings = providers.Object({"protocol": {"state_keys": ["too short"]}})
        tools = providers.List(providers.Object(show))
        prompts = providers.List(providers.Object(bare), providers.Singleton(Nameless), providers.Object(5))
        resources = providers.List(
            providers.Object(config), providers.Object(user), providers.Object(config),
            providers.Singleton(Placeless), providers.Singleton(Misfit)
        )
        extensions = providers.List(providers.Singleton(Receipts))
"""


def check(cli: CommandLine, *words: str) -> tuple[int, Any]:
    answer = cli("check", *words, "--json")
    return answer.code, json.loads(answer.stdout)


def messages(report: Any, severity: str) -> list[str]:
    return [finding["message"] for finding in report["findings"] if finding["severity"] == severity]


def test_fine(cli: CommandLine) -> None:
    """Without findings, the exit code is 0."""
    answer = cli("check", "tests.support.containers.command_containers:Container")
    assert (answer.code, answer.stdout) == (
        0,
        "tests.support.containers.command_containers:Container: 6 tools, no problems\n",
    )


def errors_of(cli: CommandLine, source: str, *words: str) -> list[str]:
    """Check some code, and return the beginnings of its errors."""
    name = f"code_{len([*cli.directory.glob('code_*')])}"  # Python imports each module once
    cli.write(f"{name}.py", source)
    code, report = check(cli, name, *words)
    assert (code, report["ok"]) == (2, False)
    return [text.partition(":")[0].replace(name, "code") for text in messages(report, "error")]


def test_all_errors_of_a_step(cli: CommandLine) -> None:
    """All errors of the settings are in one report, then all of the roles, then all of the definitions."""
    text = dedent(WRONG)
    assert errors_of(cli, text) == ["Setting limits.threads"]
    text = text.replace('"threads": 0', '"threads": 1')
    assert errors_of(cli, text, "--toolset", "absent") == ["There is no tool set 'absent'; available"]
    assert errors_of(cli, text) == [
        "Unnamed (code.py",
        "5 is not a tool",
        "Two tools have the same name",
        "The role layers contains str, which is not an ILayer",
    ]
    text = text.replace('layers = providers.List(providers.Object("no layer"))', "")
    assert errors_of(
        cli, text.replace("(First, Second, Unnamed, BadHeader)), providers.Object(5)", "(BadHeader,))")
    ) == ["Tool 'header', argument 'n'"]


def test_every_kind(cli: CommandLine) -> None:
    """Prompts, resources, templates, extensions, pages and keys are checked like tools."""
    text = dedent(FEATURES)
    assert errors_of(cli, text) == [
        "Nameless (code.py",
        "5 is not a prompt",
        "Placeless has the URI 'nowhere'",
        "Resource template 'misfits",
        "Receipts has the identifier 'receipts'",
        "Two resources have the same name",
    ]
    for wrong in (
        ", providers.Singleton(Nameless), providers.Object(5)",
        ", providers.Object(config),\n        providers.Singleton(Placeless), providers.Singleton(Misfit)",
        "\n    extensions = providers.List(providers.Singleton(Receipts))",
    ):
        assert wrong in text
        text = text.replace(wrong, "")
    assert errors_of(cli, text) == ["Setting protocol.state_keys.0"]
    text = text.replace('"too short"', "")
    assert errors_of(cli, text) == ["Tool 'show' names the page 'ui"]
    cli.write("features.py", text.replace('app="ui://absent"', ""))
    report = check(cli, "features")[1]
    assert messages(report, "warning") == [
        "Prompt 'bare' has no description: users will not know what it is for",
        "Prompt 'bare' does not describe its argument 'word'",
        "Prompt 'bare' is a plain function on the event loop: it blocks all other calls while it runs",
        "Resource 'config://app' has no description: clients will not know what it contains",
        "Resource 'config://app' is a plain function on the event loop: it blocks all other calls while it runs",
        "Resource 'users://{name}' has no description: clients will not know what it contains",
    ]
    about = [{key: one[key] for key in one if key not in ("message", "severity", "tool")} for one in report["findings"]]
    assert about == [
        *[{"prompt": "bare"}] * 3,
        *[{"resource": "config://app"}] * 2,
        {"resource": "users://{name}"},
    ]


def test_code_that_fails(cli: CommandLine) -> None:
    """An error that nothing explains is a finding too."""
    source = WRONG.replace('name = "same"', "name = property(lambda tool: 1 / 0)").replace(
        '"threads": 0', '"threads": 1'
    )
    [error] = errors_of(cli, dedent(source))
    assert error == "The start failed"


def test_everything_fine(cli: CommandLine) -> None:
    """All kinds of features are counted."""
    answer = cli("check", "tests.support.containers.full_container:Container", "--strict")
    counts = "5 tools, 3 prompts, 2 resources, 1 template"
    assert (answer.code, answer.stdout) == (
        0,
        f"tests.support.containers.full_container:Container: {counts}, no problems\n",
    )


def test_warnings(cli: CommandLine) -> None:
    """Possible improvements are warnings, and the check succeeds."""
    cli.write("improvable.py", dedent(IMPROVABLE))
    cli.write("axolotl.toml", "[tools.a_name_with_spaces]\ntimeout_seconds = 1\n")
    code, report = check(cli, "improvable")
    assert (code, report["ok"]) == (0, True)
    assert messages(report, "error") == []
    assert messages(report, "warning") == [
        "Tool 'a name with spaces' has a name that some clients refuse: use 1 to 64 of these characters: A-Z a-z 0-9 "
        "_ . -",
        "Tool 'a name with spaces' has no description: a model will not know when to call it",
        "Tool 'a name with spaces' does not describe its argument 'street'",
        "Tool 'a name with spaces' does not describe its argument 'street.name'",
        "Tool 'a name with spaces' does not describe its argument 'town'",
        "Tool 'a name with spaces' is a plain function on the event loop: it blocks all other calls while it runs",
        "Setting tools.a_name_with_spaces is for a tool that does not exist; did you mean 'a name with spaces'? "
        "(axolotl.toml:1)",
    ]


BINARY = """
    from dependency_injector import containers, providers
    from pydantic import BaseModel, ConfigDict

    from axolotl_core import tool


    class Scan(BaseModel):
        pages: list[bytes]


    class Packed(BaseModel):
        model_config = ConfigDict(ser_json_bytes="base64")

        data: bytes


    @tool
    async def read(data: bytes) -> str:
        \"\"\"Read a text.

        Args:
            data: The text.
        \"\"\"
        return data.decode()


    @tool
    async def scan() -> Scan:
        \"\"\"Scan pages.\"\"\"
        return Scan(pages=[])


    @tool
    async def photo() -> bytes:
        \"\"\"Take a picture.\"\"\"
        return b""


    @tool
    async def pack() -> Packed:
        \"\"\"Pack pages.\"\"\"
        return Packed(data=b"")


    class Container(containers.DeclarativeContainer):
        tools = providers.List(*map(providers.Object, (read, scan, photo, pack)))
"""


def test_outputs_with_bytes(cli: CommandLine) -> None:
    """A tool is named whose output has bytes that would be sent as text."""
    cli.write("binary.py", dedent(BINARY))
    found = messages(check(cli, "binary")[1], "warning")
    expected = "returns bytes, which are sent as text, so a call fails if they are not UTF-8: set ser_json_bytes="
    assert [text.partition(expected)[0] for text in found] == ["Tool 'scan' ", "Tool 'photo' "]


def test_strict(cli: CommandLine) -> None:
    """With `--strict`, warnings are errors."""
    cli.write("improvable.py", dedent(IMPROVABLE))
    assert check(cli, "improvable", "--strict")[0] == 2


def test_text(cli: CommandLine) -> None:
    """The text has a line for each finding, and a summary."""
    cli.write("improvable.py", dedent(IMPROVABLE))
    lines = cli("check", "improvable").stdout.splitlines()
    assert lines[0].startswith("warning Tool 'a name with spaces' has a name")
    assert lines[-1] == "improvable: 1 tool, 0 errors, 6 warnings"


@pytest.mark.parametrize(
    ("container", "finding"),
    [
        pytest.param("pass", "The container has no role tools", id="no-tools"),
        pytest.param(
            "tools = providers.List(providers.Callable(max))",
            "A provider of the container failed: TypeError",
            id="role",
        ),
        pytest.param(
            "pool = providers.Resource(lambda: 1 / 0)\n    tools = providers.List()",
            "A resource of the container failed to start (pool) (",
            id="resource",
        ),
        pytest.param(
            "store = providers.Dependency()\n    tools = providers.List(store)",
            "undefined dependencies",
            id="undefined",
        ),
    ],
)
def test_wrong_container(cli: CommandLine, container: str, finding: str) -> None:
    """A container that cannot be used is a finding."""
    imports = "from dependency_injector import containers, providers\n"
    cli.write("wrong.py", f"{imports}class Container(containers.DeclarativeContainer):\n    {container}\n")
    code, report = check(cli, "wrong")
    assert code == 2
    assert any(finding in message for message in messages(report, "error"))
    assert cli("list", "wrong").code == 2


def test_unlistable_tool(cli: CommandLine) -> None:
    """A tool that would make the list of tools fail is a finding."""
    unlistable = """
        from dependency_injector import containers, providers

        from axolotl_core import tool


        @tool(meta={"owner": object()})
        async def greet() -> str:
            \"\"\"Greet.\"\"\"
            return "Hello"


        class Container(containers.DeclarativeContainer):
            tools = providers.List(providers.Object(greet))
    """
    cli.write("unlistable.py", dedent(unlistable))
    code, report = check(cli, "unlistable")
    assert code == 2
    assert messages(report, "error")[0].startswith("Tool 'greet' cannot be listed: TypeError")


def test_missing_target(cli: CommandLine) -> None:
    """A missing target is a finding like any other."""
    code, report = check(cli, "absent_module")
    assert code == 2
    assert "Module 'absent_module' not found" in messages(report, "error")[0]


def test_disabled_tools_are_left_out(cli: CommandLine) -> None:
    """Disabled tools are not compiled."""
    cli.write("improvable.py", dedent(IMPROVABLE))
    cli.write("axolotl.toml", "[tools.'a name with spaces']\nenabled = false\n")
    assert check(cli, "improvable", "--strict")[0] == 0


APPROVED = """
    from dependency_injector import containers, providers

    from axolotl_core import tool


    @tool(task_support="optional", requires_approval=True)
    async def pay() -> str:
        \"\"\"Pay.\"\"\"
        return "paid"


    @tool(task_support="optional", requires_approval=True, task_restart="resume")
    async def post() -> str:
        \"\"\"Post.\"\"\"
        return "posted"


    @tool(requires_approval=True)
    async def print_it() -> str:
        \"\"\"Print.\"\"\"
        return "printed"


    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Object(pay), providers.Object(post), providers.Object(print_it))
"""


def test_tasks_that_hold_a_slot(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool is named whose stored tasks wait for approval in a worker; tasks in memory have no worker to occupy."""
    cli.write("approved.py", dedent(APPROVED))
    assert check(cli, "approved:Container")[1]["findings"] == []
    monkeypatch.setenv("AXOLOTL_TASKS__URL", "sqlite:///tasks.db")
    (found,) = check(cli, "approved:Container")[1]["findings"]
    assert (found["severity"], found["tool"]) == ("warning", "pay")
    assert "occupies a slot of a worker while its task waits for approval" in found["message"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://host/x", "unknown scheme 'mysql'; write sqlite:///tasks.db"),
        ("tasks.db", "the scheme is missing; write sqlite:///tasks.db"),
        ("sqlite://tasks.db", "sqlite: needs three slashes before a relative path"),
        ("postgresql://host/x", "tasks in Postgres are encrypted: set protocol.state_keys"),
    ],
)
def test_the_store_of_tasks(cli: CommandLine, url: str, problem: str) -> None:
    """A wrong `tasks.url` is found before a server starts."""
    cli.write("axolotl.toml", f'[tasks]\nurl = "{url}"\n')
    code, report = check(cli, "tests.support.containers.command_containers:Polite")
    [finding] = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert code == 2
    assert finding["message"].startswith(f"Setting tasks.url: {problem}")


def test_the_store_of_tasks_is_not_touched(cli: CommandLine) -> None:
    """The check creates no file, and needs neither the directory of the file nor a database."""
    for url, keys in (("sqlite:///later/tasks.db", "[]"), ("postgresql://127.0.0.1:1/x", f'["{"k" * 32}"]')):
        cli.write("axolotl.toml", f'[tasks]\nurl = "{url}"\n[protocol]\nstate_keys = {keys}\n')
        assert check(cli, "tests.support.containers.command_containers:Polite")[0] == 0
    assert [path.name for path in cli.directory.iterdir()] == ["axolotl.toml"]


def test_a_key_without_its_unit(cli: CommandLine) -> None:
    """`timeout` stands for `timeout_seconds`, although the words are not similar."""
    cli.write("axolotl.toml", "[tools.greet]\ntimeout = 3\n")
    _, report = check(cli, "tests.support.containers.command_containers:Polite")
    assert "Setting tools.greet.timeout is unknown; did you mean 'timeout_seconds'? (axolotl.toml:2)" in [
        finding["message"] for finding in report["findings"]
    ]
