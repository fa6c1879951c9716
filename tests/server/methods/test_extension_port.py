"""Extensions: settings, methods and identifiers."""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, SecretStr

from axolotl_core import ConfigurationError, Context, prompt
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, Invoke, Layer
from axolotl_core.protocol.versions import REVISIONS, STATELESS_REVISIONS, Revision
from axolotl_core.resources.skills import skill_folder
from axolotl_server import Extension, Section, ServerHost, connect
from axolotl_server.extension import ExtensionMethod, FeatureSet, Topic, check_extension
from axolotl_server.hosting.worker_settings import worker_warnings
from axolotl_server.http.asgi import Route, send_json
from axolotl_server.http.assembly import make_app
from axolotl_server.protocol.eras.era import Method, Row
from axolotl_server.protocol.request import Request
from axolotl_server.settings.effective import effective_values
from axolotl_server.settings.loading import load_with_origins
from axolotl_server.settings.settings_file import read_settings_file
from tests.support.peers.memory_peer import Peer, container_with
from tests.support.peers.task_peers import Job
from tests.support.servers.probed_server import probed
from tests.support.tools import Echo


@prompt
def greeting() -> str:
    """Greet."""
    return "hello"


class Receipts(Extension):
    identifier = "com.example/receipts"

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return {"receipts/get": self.get}

    async def get(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"id": params["id"], "request": context.request_id}


async def test_an_extension_answers_its_methods() -> None:
    """A method takes the parameters and the context, and returns the result."""
    check_extension(Receipts())
    assert Receipts().settings == {}
    answer = await Receipts().methods["receipts/get"]({"id": 5}, Context(request_id=7))
    assert answer == {"id": 5, "request": 7}


def test_an_extension_may_only_be_announced() -> None:
    """Settings are optional."""
    made = Extension("com.example/receipts", {"version": 1})
    assert (made.identifier, made.settings, made.methods) == ("com.example/receipts", {"version": 1}, {})
    assert Extension("com.example/receipts").settings == {}


@pytest.mark.parametrize(
    "identifier",
    [
        "com.example/receipts",
        "io.modelcontextprotocol/ui",
        "a/b",
        "com.my-company.x9/a_b.c-d",
        "com.example/2",
    ],
)
def test_an_identifier_stands_below_a_domain(identifier: str) -> None:
    """The form is that of the keys in `_meta`, with a prefix."""
    check_extension(Extension(identifier))


@pytest.mark.parametrize(
    "identifier",
    [
        None,
        5,
        "",
        "receipts",
        "/receipts",
        "com.example/",
        "com.example/a/b",
        "com..example/a",
        ".com/a",
        "com./a",
        "9com.example/a",
        "-com/a",
        "com-/a",
        "com.example/-a",
        "com.example/a-",
        "com.example/a b",
        "com.example/a\n",
        "cöm/a",
    ],
)
def test_another_form_is_refused(identifier: Any) -> None:
    """The error contains the identifier and an example."""
    with pytest.raises(ConfigurationError, match=r"Extension has the identifier .*: use one such as com\.example/rec"):
        check_extension(Extension(identifier))


def test_an_extension_without_an_identifier_is_refused() -> None:
    """The error contains the class."""

    class Forgetful(Extension): ...

    with pytest.raises(ConfigurationError, match="Forgetful has the identifier None"):
        check_extension(Forgetful())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Receipts, "the class Receipts; use an instance", id="class"),
        pytest.param("com.example/receipts", "contains str, which is not an Extension", id="text"),
        pytest.param(None, "contains NoneType, which is not an Extension", id="nothing"),
    ],
)
def test_other_objects_are_refused(value: Any, text: str) -> None:
    """The error contains the type of the value."""
    with pytest.raises(ConfigurationError, match=text):
        check_extension(value)


async def refused(*extensions: Any, settings: Any = None, file: str | None = None, tmp_path: Path | None = None) -> Any:
    """Return what a start with these extensions refuses."""
    read = None
    if file is not None and tmp_path is not None:
        (tmp_path / "axolotl.toml").write_text(file)
        read = read_settings_file(tmp_path / "axolotl.toml").select(None)
    with pytest.raises(ConfigurationError) as told:
        await ServerHost(container_with((Echo(),), extensions=extensions), flags=settings, file=read).start()
    return told.value.findings


class Prices(Section):
    """A section with a required value, a number and a secret."""

    base: str
    refresh_seconds: float = Field(60, gt=0)
    token: SecretStr | None = None


class Rates(Extension):
    """An extension with a section, which remembers what happens to it."""

    identifier = "com.example/rates"
    section = "rates"
    section_model = Prices

    def __init__(self) -> None:
        self.happened: list[Any] = []

    def attach(self, server: Any, section: Any) -> None:
        self.happened.append(section)

    def rows(self) -> Iterable[Row]:
        return (Row("rates/raw", STATELESS_REVISIONS, None, self.answer),)

    async def answer(self, request: Request) -> bytes | None:
        return b'{"raw":1' + request.era.tail

    def around(self, name: str, method: Method, revision: Revision) -> Method:
        if name != "tools/list":
            return method

        async def counted(request: Request) -> bytes | None:
            self.happened.append(name)
            return await method(request)

        return counted

    def topics(self) -> Mapping[str, Topic]:
        return {"rateNames": Topic("rates", self.choose)}

    async def choose(self, request: Request, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name == "EUR")

    async def start(self) -> None:
        self.happened.append("start")

    def pause(self) -> None:
        self.happened.append("pause")

    async def stop(self) -> None:
        self.happened.append("stop")


SECTION: Mapping[str, Any] = {"extensions": {"rates": {"base": "EUR"}}}


async def test_an_extension_has_a_section_rows_and_a_life() -> None:
    """It gets its section, answers its own method, wraps another, and is started and stopped."""
    rates = Rates()
    async with connect(container_with((Echo(),), extensions=(rates,)), settings=SECTION) as client:
        assert (await client.request("rates/raw", {}))["raw"] == 1
        await client.list_tools()
        assert rates.happened == [Prices(base="EUR"), "start", "tools/list"]
    assert rates.happened[3:] == ["stop"]


async def test_an_extension_adds_features() -> None:
    """Its tools are served with those of the container, in a tool set of their own, and alone."""

    class Adding(Extension):
        async def features(self) -> Mapping[str, Sequence[FeatureSet]]:
            return {"tools": (FeatureSet("added", (Job(),)),)}

    adding = Adding("com.example/adding")
    async with connect(container_with((Echo(),), extensions=(adding,))) as client:
        assert [one["name"] for one in await client.list_tools()] == ["echo", "job"]
    async with ServerHost(container_with(extensions=(adding,))) as host:
        assert [(one.spec.name, one.spec.toolset) for one in host.bindings()["tools"]] == [("job", "added")]
        assert "tools" in host.assembly.capabilities[REVISIONS[0]]
        assert [type(one).__name__ for one in host.roles.bundled] == ["Tasks"]
    async with ServerHost(container_with(prompts=(greeting,), extensions=(adding,))) as host:
        assert {"tools", "prompts"} <= host.assembly.capabilities[REVISIONS[0]].keys()


async def test_an_extension_serves_paths_of_its_own() -> None:
    """It adds routes and a warning for several workers, hears that the server is about to stop, and takes no path."""

    class Serving(Rates):
        section = ""
        path = "/rates"

        def routes(self, gate: Any, sessions: Any) -> Mapping[str, Route]:
            return {self.path: Route(self.serve, is_open=True)}

        async def serve(self, scope: Any, headers: Any, receive: Any, send: Any) -> None:
            await send_json(send, 200, b"[]", [])

        def worker_warnings(self) -> Iterable[str]:
            return ("each worker has rates of its own",)

    rates = Serving()
    async with probed(extensions=(rates,)) as server:
        assert (await server.told("/rates")) == (200, [])
        assert "each worker has rates of its own" in worker_warnings(server.host.settings, server.host.roles)
    assert rates.happened[1:] == ["start", "pause", "stop", "stop"]
    rates.path = "/mcp"
    async with ServerHost(container_with((Echo(),), extensions=(rates,))) as host:
        with pytest.raises(ConfigurationError, match=r"com\.example/rates serves /mcp, which is already in use"):
            make_app(host)


async def test_a_layer_of_an_extension_goes_around_every_feature() -> None:
    """It is inside of the layers of the server and outside of those of the container."""
    seen: list[str] = []

    def noting(name: str) -> Any:
        def note(spec: FeatureSpec, call_next: Invoke) -> Invoke:
            async def noted(call: Call) -> Any:
                seen.append(name)
                return await call_next(call)

            return noted

        return note

    class Layered(Extension):
        def layers(self) -> Iterable[Layer]:
            return (noting("extension"),)

    roles = {"extensions": (Layered("com.example/layered"),), "layers": (noting("container"),)}
    async with connect(container_with((Echo(),), **roles)) as client:
        await client.call("echo", {"text": "x"})
    assert seen == ["extension", "container"]


async def test_what_comes_with_the_server_is_announced_where_it_works() -> None:
    """Tasks of one revision are no extension there, skills and tasks are announced without a handshake, and the console
    never is.
    """
    skills = (skill_folder(Path(__file__).parents[3] / "docs/examples/skills"),)
    container = container_with((Job(),), skills=skills)
    async with ServerHost(container, flags={"console": {"enabled": True}}) as host:
        announced = {
            one.name: (sorted(made.get("extensions", {})), "tasks" in made)
            for one, made in host.assembly.capabilities.items()
        }
    of_stateless = (["io.modelcontextprotocol/skills", "io.modelcontextprotocol/tasks"], False)
    assert announced == {one.name: of_stateless if one.stateless else ([], one.tasks) for one in REVISIONS}


async def test_names_of_a_topic_are_followed() -> None:
    """A client hears of the names that it may follow, and of no others."""
    async with ServerHost(container_with((Echo(),), extensions=(Rates(),)), flags=SECTION) as host:
        peer, wanted = Peer(host), {"toolsListChanged": True, "rateNames": ["EUR", "USD"]}
        peer.send("subscriptions/listen", {"notifications": wanted})
        heard = (await peer.receive())["params"]["notifications"]
        assert heard == {"toolsListChanged": True, "rateNames": ["EUR"]}
        for name in ("USD", "EUR"):
            host.assembly.subscriptions.publish("rateNames", name, "notifications/rates", {"name": name})
        assert (await peer.receive())["params"]["name"] == "EUR"
        many = await peer.ask("subscriptions/listen", {"notifications": {"rateNames": ["EUR"] * 101}})
        assert "a request may name 100 rates" in many["error"]["message"]
        wrong = await peer.ask("subscriptions/listen", {"notifications": {"rateNames": "EUR"}})
        assert "$.params.notifications.rateNames" in wrong["error"]["message"]


async def test_a_wrong_section_stops_the_start(tmp_path: Path) -> None:
    """Values, keys and names are checked like all other settings, with file and line."""
    file = '[extensions.rates]\nbase = "EUR"\nrefresh_seconds = "1 m"\ntokn = "x"\n\n[extensions.rate]\nbase = "EUR"\n'
    findings = sorted(await refused(Rates(), file=file, tmp_path=tmp_path))
    unknown_section, wrong, unknown_key = findings
    assert unknown_section.startswith("Setting extensions.rate is unknown; did you mean 'rates'? (")
    assert unknown_section.endswith("axolotl.toml:6)")
    assert "extensions.rates.refresh_seconds: must be a number of seconds: write 60 instead of '1 m' (" in wrong
    assert wrong.endswith("axolotl.toml:3)")
    assert "extensions.rates.tokn is unknown; did you mean 'token'? (" in unknown_key
    assert await refused(Rates()) == ("Setting extensions.rates.base: Field required (default)",)
    assert await refused(settings={"extensions": {"rates": {}}}) == ("Setting extensions.rates is unknown (argument)",)


async def test_the_secrets_of_a_section_stay_secret(tmp_path: Path) -> None:
    """A secret comes from a file, and is masked where settings are shown, with and without the extension."""
    (tmp_path / "token").write_text("sesame\n")
    flags = {"extensions": {"rates": {"base": "EUR", "token_file": str(tmp_path / "token")}}}
    rates = Rates()
    async with ServerHost(container_with((Echo(),), extensions=(rates,)), flags=flags) as host:
        assert rates.happened[0].token.get_secret_value() == "sesame"
        shown = {one.name: one.value for one in effective_values(host.loaded_settings)}
    assert (shown["extensions.rates.base"], shown["extensions.rates.token"]) == ("EUR", "********")
    raw = load_with_origins(flags={"extensions": {"rates": {"token": "sesame"}}}, environment={})
    assert "sesame" not in str([one.value for one in effective_values(raw)])


async def test_mistakes_of_extensions_stop_the_start() -> None:
    """Identifiers, sections and methods belong to one extension, and what an extension raises is a finding."""
    twin = Extension("com.example/rates")
    twin.section = "rates"
    assert await refused(Rates(), twin, settings=SECTION) == (
        "Two extensions have the identifier 'com.example/rates'",
        "Two extensions have the section 'rates'",
    )
    other = Extension("com.example/other")
    other.section = "My Section"
    [finding] = await refused(other)
    assert finding.startswith("com.example/other has the section 'My Section'")
    other.section, other.section_model = "mine", dict  # type: ignore[assignment]
    assert await refused(other) == ("The section_model of com.example/other is not a class that extends Section",)

    class Copy(Rates):
        identifier, section = "com.example/copy", ""

    [finding] = await refused(Rates(), Copy(), settings=SECTION)
    assert finding.startswith("The extension com.example/copy adds the method 'rates/raw', which already exists")

    class Broken(Extension):
        identifier = "com.example/broken"

        def attach(self, server: Any, section: Any) -> None:
            raise RuntimeError("no power")

        async def features(self) -> Any:
            raise ValueError("no features")

    [finding] = await refused(Broken())
    assert finding.startswith("features of the extension com.example/broken failed (")
    assert finding.endswith("ValueError: no features")


async def test_an_extension_without_its_members_changes_nothing() -> None:
    """Without skills, tasks and console, the same functions answer as without extensions, in all revisions."""
    async with ServerHost(container_with((Echo(),))) as host:
        eras = [
            host.handler.era_of(one.name) if not one.stateless else host.assembly.eras.stateless for one in REVISIONS
        ]
        assert {era.methods["tools/call"] for era in eras} == {host.assembly.tool_methods.call}
        assert host.assembly.extensions == ()
    async with ServerHost(container_with((Job(),))) as host:
        calls = {era.name: host.assembly.eras.named(era.name).methods["tools/call"] for era in REVISIONS}
    plain = [name for name, call in calls.items() if call == host.assembly.tool_methods.call]
    assert plain == [one.name for one in REVISIONS if not one.tasks and not one.stateless]
    assert len(plain) == len(REVISIONS) - 2


def test_a_server_loads_the_extensions_that_it_has() -> None:
    """No module of an extension is loaded by a server that does not use it."""
    script = (
        "import asyncio, sys\n"
        "from axolotl_server import connect\n"
        "from axolotl_examples.starter import Container\n"
        "async def main():\n"
        "    async with connect(Container()) as client:\n"
        "        await client.list_tools()\n"
        "asyncio.run(main())\n"
        "print(sorted(name for name in sys.modules if name.startswith('axolotl_server.extensions')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
