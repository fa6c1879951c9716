"""Containers: roles, resources and errors."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, Context, ITool, NoArguments, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke
from axolotl_server import ServerHost, ServerSettings, connect
from tests.support.tools import Echo


class Named(ITool[NoArguments, str]):
    """Returns its dependency."""

    def __init__(self, name: str, value: Any = None) -> None:
        self.name = name
        self.value = value

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return f"{self.name} {self.value}"


class Nothing(ILayer):
    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        return call_next


async def names_of(container: containers.Container, *toolsets: str) -> list[str]:
    async with ServerHost(container, toolsets=toolsets) as host:
        return [one.name for one in host.registry.get_all()]


async def findings_of(container: containers.Container, *toolsets: str, **flags: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        await ServerHost(container, toolsets=toolsets, flags=flags).start()
    return list(caught.value.findings)


async def test_a_list_of_tools() -> None:
    """Tools are served in the order of the list, which can be nested."""

    class Container(containers.DeclarativeContainer):
        tools = providers.List(
            providers.Singleton(Named, "a"),
            providers.Object([Named("b"), (Named("c"),)]),
            providers.Callable(lambda: [Named(name) for name in "de"]),
        )

    assert await names_of(Container()) == ["a", "b", "c", "d", "e"]


async def test_an_empty_list_is_a_list() -> None:
    """A server without tools starts."""

    class Container(containers.DeclarativeContainer):
        tools = providers.List()

    assert await names_of(Container()) == []


class Mail(containers.DeclarativeContainer):
    prefix = providers.Dependency(instance_of=str, default="mail")
    tools = providers.List(providers.Singleton(Named, providers.Callable("{}.send".format, prefix)))


class Files(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Named, "files.read"), providers.Singleton(Named, "files.write"))


class Sets(containers.DeclarativeContainer):
    """A tool and two sets."""

    tools = providers.List(providers.Singleton(Named, "own"))
    mail = providers.Container(Mail, prefix="letters")
    files = providers.Container(Files)


async def test_sub_containers_are_tool_sets() -> None:
    """The tools of sub-containers are tool sets, which can be selected."""
    assert await names_of(Sets()) == ["own", "letters.send", "files.read", "files.write"]
    assert await names_of(Sets(), "files") == ["own", "files.read", "files.write"]
    assert await names_of(Sets(), "mail", "files") == ["own", "letters.send", "files.read", "files.write"]


async def test_sets_may_contain_sets() -> None:
    """A nested set is selected by its full name, or with the outer one."""

    class Outer(containers.DeclarativeContainer):
        tools = providers.List(providers.Singleton(Named, "outer"))
        inner = providers.Container(Files)

    class Container(containers.DeclarativeContainer):
        mail = providers.Container(Mail)
        office = providers.Container(Outer)

    everything = ["mail.send", "outer", "files.read", "files.write"]
    assert await names_of(Container()) == everything
    assert await names_of(Container(), "office") == everything[1:]
    assert await names_of(Container(), "office.inner") == everything[2:]
    assert await findings_of(Container(), "off") == [
        "There is no tool set 'off'; available: mail, office, office.inner"
    ]


async def test_sub_containers_suffice() -> None:
    """A container can have only sets."""

    class Container(containers.DeclarativeContainer):
        files = providers.Container(Files)
        other = providers.Factory(Named, "no tool of this server")

    assert await names_of(Container()) == ["files.read", "files.write"]


async def test_an_aggregate_is_a_set_of_sets() -> None:
    """The parts of an aggregate can be selected by name."""

    class Container(containers.DeclarativeContainer):
        tools: providers.Aggregate[Any] = providers.Aggregate(
            one=providers.Singleton(Named, "a"),
            two=providers.List(providers.Singleton(Named, "b"), providers.Singleton(Named, "c")),
        )

    assert await names_of(Container()) == ["a", "b", "c"]
    assert await names_of(Container(), "two") == ["b", "c"]


async def test_an_unknown_set_is_reported() -> None:
    """An unknown set is reported with the nearest one, or with all."""
    assert await findings_of(Sets(), "file") == ["There is no tool set 'file'; did you mean 'files'?"]
    assert await findings_of(Sets(), "x", "y") == [
        "There is no tool set 'x'; available: mail, files",
        "There is no tool set 'y'; available: mail, files",
    ]


async def test_overriding_reaches_the_tools() -> None:
    """An overridden dependency is used by the tools."""

    class Container(containers.DeclarativeContainer):
        repository = providers.Singleton(lambda: "real")
        tools = providers.List(providers.Singleton(Named, "who", repository))

    container = Container()
    with container.repository.override(providers.Object("fake")):
        async with connect(container) as client:
            assert (await client.call("who")).text == "who fake"
    async with connect(Container()) as client:
        assert (await client.call("who")).text == "who real"


async def test_a_role_can_be_overridden() -> None:
    """The role `tools` can be overridden."""
    container = Sets()
    with container.tools.override(providers.Object([Echo()])):
        assert (await names_of(container))[0] == "echo"


def with_resources(notes: list[str]) -> type[containers.DeclarativeContainer]:
    """Create a container whose resources record when they start and stop."""

    def resource(name: str) -> Iterator[str]:
        notes.append(f"{name} started")
        yield name
        notes.append(f"{name} stopped")

    async def async_resource(name: str, needs: Any = None) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        notes.append(f"{name} started")
        yield name
        await asyncio.sleep(0)
        notes.append(f"{name} stopped")

    class Container(containers.DeclarativeContainer):
        settings: providers.Object[Any] = providers.Object({})
        files = providers.Resource(resource, "files")
        database = providers.Resource(async_resource, "database")
        cache = providers.Resource(async_resource, "cache", needs=database)
        tools = providers.List(providers.Singleton(Named, "plain"), providers.Singleton(Named, "cached", cache))

    return Container


async def test_resources_start_before_the_tools_and_stop_after_them() -> None:
    """Resources start before the tools, in the order of their dependencies, and stop after them."""
    notes: list[str] = []
    async with connect(with_resources(notes)()) as client:
        assert {note.partition(" ")[0] for note in notes} == {"files", "database", "cache"}
        assert notes.index("database started") < notes.index("cache started")
        assert (await client.call("cached")).text == "cached cache"
        assert not any("stopped" in note for note in notes)
    assert sum("stopped" in note for note in notes) == 3
    assert notes.index("cache stopped") < notes.index("database stopped")


async def test_resources_stop_when_the_start_fails() -> None:
    """If the start fails, started resources are stopped."""
    notes: list[str] = []
    container = with_resources(notes)()
    container.tools.override(providers.Object([Named("same"), Named("SAME")]))
    await findings_of(container)
    assert sorted(notes) == sorted(
        f"{name} {state}" for name in ("files", "database", "cache") for state in ("started", "stopped")
    )


async def test_a_resource_that_fails_is_reported() -> None:
    """If a resource cannot start, the server does not start, and other resources are stopped."""
    notes: list[str] = []

    def failing(name: str) -> str:
        raise OSError("no database at db:5432")

    container = with_resources(notes)()
    container.database.override(providers.Resource(failing, "database"))
    (finding,) = await findings_of(container)
    assert "no database at db:5432" in finding
    assert sum("started" in note for note in notes) == sum("stopped" in note for note in notes)


async def test_a_server_can_be_started_again() -> None:
    """A stopped container can be served again."""
    notes: list[str] = []
    container = with_resources(notes)()
    for _ in range(2):
        assert await names_of(container) == ["plain", "cached"]
    assert sum("started" in note for note in notes) == sum("stopped" in note for note in notes) == 6


async def test_settings_may_come_from_the_container() -> None:
    """The role `settings` provides defaults, as a mapping or an object; flags override it."""
    for value in ({"server": {"name": "mine"}}, ServerSettings.model_validate({"server": {"name": "mine"}})):

        class Container(containers.DeclarativeContainer):
            settings = providers.Object(value)
            tools = providers.List()

        async with ServerHost(Container()) as host:
            assert host.settings.server.name == "mine"
        async with ServerHost(Container(), flags={"server": {"name": "other"}}) as host:
            assert host.settings.server.name == "other"


async def test_a_configuration_provider_gives_settings() -> None:
    """A Configuration provider can be the role `settings`."""

    class Container(containers.DeclarativeContainer):
        settings = providers.Configuration()
        tools = providers.List()

    container = Container()
    container.settings.from_dict({"limits": {"threads": 7}})
    async with ServerHost(container) as host:
        assert host.settings.limits.threads == 7


async def test_layers_may_come_from_the_container() -> None:
    """The role `layers` provides layers in nested lists."""

    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Singleton(Echo))
        layers = providers.List(providers.Singleton(Nothing), providers.Object([Nothing()]))

    async with ServerHost(Container()) as host:
        assert [type(layer) for layer in host.roles.layers] == [Nothing, Nothing]


@tool
def twin() -> str:
    return ""


async def test_all_findings_are_reported_at_once() -> None:
    """All problems are reported at once, each with a solution."""

    class Nameless(ITool[NoArguments, str]):
        async def execute(self, arguments: NoArguments, context: Context) -> str:
            return ""

    class Container(containers.DeclarativeContainer):
        tools = providers.List(
            providers.Singleton(Nameless),
            providers.Object(Echo),
            providers.Object("tool"),
            providers.Object(twin),
            providers.Singleton(Named, "TWIN"),
            providers.Singleton(Named, "x" * 200),
        )
        layers = providers.List(providers.Object("layer"))

    findings = await findings_of(Container())
    assert len(findings) == 6
    text = "\n".join(findings)
    assert ') has no name: write name = "nameless" in the class' in text
    assert "is not a tool: register an instance, not the class" in text
    assert "'tool' is not a tool: subclass ITool or use @tool" in text
    assert "Two tools have the same name: 'twin' (" in text
    assert "test_container.twin, tests/server/hosting/test_container.py:" in text
    assert "use 1 to 128 printable characters" in text
    assert "The role layers contains str, which is not an ILayer" in text


async def test_tools_that_cannot_be_compiled_are_reported_at_once() -> None:
    """Tools whose schemas cannot be generated are all reported at the start."""

    class Unwritable(ITool[NoArguments, Any]):
        def __init__(self, name: str) -> None:
            self.name = name
            self.output_model = type("Opaque", (), {})  # type: ignore[misc]

        async def execute(self, arguments: NoArguments, context: Context) -> Any:
            return None

    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Singleton(Unwritable, "one"), providers.Singleton(Unwritable, "two"))

    findings = await findings_of(Container())
    assert len(findings) == 2
    assert "'one'" in findings[0]
    assert "'two'" in findings[1]


async def test_tools_of_different_sets_may_not_collide() -> None:
    """Two tools with the same name are reported with their sets; selecting one set avoids that."""

    class Container(containers.DeclarativeContainer):
        left = providers.Container(Files)
        right = providers.Container(Files)

    findings = await findings_of(Container())
    assert len(findings) == 2
    assert "in tool set 'left'" in findings[0]
    assert "in tool set 'right'" in findings[0]
    assert await names_of(Container(), "left") == ["files.read", "files.write"]


async def test_a_container_without_tools_is_reported() -> None:
    """A container without tools is reported with an example."""

    class Container(containers.DeclarativeContainer):
        services = providers.List()

    (finding,) = await findings_of(Container())
    assert finding.startswith("The container has no role tools, prompts, resources or skills: write tools = ")


async def test_missing_dependencies_are_reported() -> None:
    """A dependency without a value is named."""

    class Container(containers.DeclarativeContainer):
        repository: providers.Dependency[Any] = providers.Dependency()
        tools = providers.List(providers.Singleton(Named, "a", repository))

    (finding,) = await findings_of(Container())
    assert "repository" in finding


async def test_a_provider_that_fails_is_reported() -> None:
    """A constructor that raises is reported with its error."""

    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Singleton(int, "x"))

    (finding,) = await findings_of(Container())
    assert "ValueError: invalid literal" in finding


async def test_invalid_settings_are_reported() -> None:
    """An invalid role `settings` is rejected."""

    class Container(containers.DeclarativeContainer):
        settings = providers.Object(7)
        tools = providers.List()

    assert await findings_of(Container()) == ["The role settings returned int; return ServerSettings or a mapping"]


async def test_invalid_values_and_unknown_keys_are_reported() -> None:
    """Invalid values and unknown keys are reported, the key with the nearest valid one."""
    findings = await findings_of(Sets(), http={"prot": 1, "port": "x"})
    assert len(findings) == 2
    assert any("did you mean 'port'?" in finding for finding in findings)


async def test_the_container_is_not_asked_by_calls() -> None:
    """A tool is created once, at the start."""
    made = []

    def make() -> ITool[Any, Any]:
        made.append(1)
        return Echo()

    class Container(containers.DeclarativeContainer):
        tools = providers.List(providers.Factory(make))

    async with connect(Container()) as client:
        for _ in range(5):
            await client.call("echo")
    assert made == [1]


async def test_tools_may_come_and_go() -> None:
    """Tools can be added and removed at run time; a tool that cannot be compiled changes nothing."""
    async with connect(Sets()) as client, ServerHost(Sets()) as host:
        assert len(await client.list_tools()) == 4
        assert host.registry.register(Echo())
        assert not host.registry.register(Echo())
        assert host.registry.unregister("OWN")
        broken = Named("broken")
        broken.output_model = type("Opaque", (), {})  # type: ignore[misc]
        with pytest.raises(ConfigurationError):
            host.registry.register(broken)
        assert "broken" not in host.registry
        assert [binding.spec.name for binding in host.assembly.tools.bindings()] == [
            "letters.send",
            "files.read",
            "files.write",
            "echo",
        ]
