"""Profiles: tables of the settings file that override the others, for one situation."""

from collections.abc import Sequence
from pathlib import Path

import jsonschema_rs
import pytest

from axolotl_core import Principal, tool
from axolotl_core.errors import ConfigurationError
from axolotl_server import RemoteError, connect
from axolotl_server.settings.file_schema import file_schema
from axolotl_server.settings.loading import load_settings, load_with_origins
from axolotl_server.settings.settings_file import FileSettings, find_file, read_settings_file
from tests.support.peers.memory_peer import container_with

FILE = """
target = "acme:Container"

[http]
port = 9000
path = "/base"

[authorization]
default = "deny"

[profile.test]
target = "acme.tests:Container"

[profile.test.http]
port = 9001

[profile.open.authorization]
default = "allow"
"""


@tool
async def greet() -> str:
    """Greet."""
    return "hello"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSettings:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "axolotl.toml").write_text(FILE, encoding="utf-8")
    return find_file(tmp_path)


def findings_of(file: FileSettings) -> Sequence[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(file=file)
    return caught.value.findings


def test_a_profile_overrides_single_settings(file: FileSettings) -> None:
    """A profile changes what it sets and keeps the rest; without a profile, it has no effect."""
    assert load_settings(file=file).http.port == 9000
    chosen = file.select("test")
    settings = load_settings(file=chosen)
    assert (settings.http.port, settings.http.path, chosen.target) == (9001, "/base", "acme.tests:Container")


def test_origins_name_the_profile_and_the_line(file: FileSettings) -> None:
    """The origin of a value in a profile is its line and the name of the profile."""
    loaded = load_with_origins(file=file.select("test"))
    assert str(loaded.origin_of(("http", "port"))) == "axolotl.toml:15, profile test"
    assert str(loaded.origin_of(("http", "path"))) == "axolotl.toml:6"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tset", "axolotl.toml has no profile 'tset'; did you mean 'test'?"),
        ("production", "axolotl.toml has no profile 'production'; it has open, test"),
    ],
)
def test_unknown_profiles(file: FileSettings, name: str, message: str) -> None:
    """An unknown profile is an error that names the nearest one, or all."""
    with pytest.raises(ConfigurationError) as caught:
        file.select(name)
    assert caught.value.findings == (message,)


def test_a_profile_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a settings file, or without profiles in it, the error says so."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"no axolotl\.toml was found here or in a parent directory"):
        find_file(tmp_path).select("prod")
    (tmp_path / "axolotl.toml").write_text("[http]\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"axolotl\.toml has no profile 'prod': add a table \[profile\.prod\]"):
        find_file(tmp_path).select("prod")


def test_mistakes_in_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown keys and wrong values in a profile are reported like others, with line and nearest name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.toml").write_text('[profile.dev.http]\nprot = 1\nport = "x"\n', encoding="utf-8")
    file = read_settings_file(Path("other.toml")).select("dev")
    port, unknown = sorted(findings_of(file))
    assert unknown == "Setting http.prot is unknown; did you mean 'port'? (other.toml:2, profile dev)"
    assert port.endswith("(other.toml:3, profile dev)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile = 1", "profile must be a table"),
        ("[profile]\ndev = 1", "profile.dev must be a table"),
        ("[profile.dev]\ntarget = 1", "profile.dev.target must be a string"),
        ("toolset = 1", "toolset must be a string"),
    ],
)
def test_wrong_types(tmp_path: Path, text: str, message: str) -> None:
    """Profiles that are not tables are reported."""
    path = tmp_path / "axolotl.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_settings_file(path)
    assert caught.value.findings == (f"{path}: {message}",)


def test_the_schema_knows_profiles() -> None:
    """The schema accepts every setting in a profile, and refuses unknown ones."""
    validator = jsonschema_rs.validator_for(file_schema())
    assert validator.is_valid({"profile": {"dev": {"target": "a:B", "http": {"port": 1}}}})
    assert not validator.is_valid({"profile": {"dev": {"htpt": {}}}})
    assert not validator.is_valid({"profile": {"dev": {"http": {"prot": 1}}}})


async def test_connect_reads_a_settings_file(file: FileSettings) -> None:
    """A test can use the real settings file, with a profile."""
    with pytest.raises(RemoteError, match="not found"):
        async with connect(container_with((greet,)), settings="axolotl.toml", profile="test") as client:
            await client.call("greet")
    assert file.path is not None
    async with connect(container_with((greet,)), settings=file.path, profile="open") as client:
        assert (await client.call("greet")).text == "hello"


async def test_tests_leave_the_audit_log_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit log and the telemetry of the file are not used in tests, unless the profile has them."""
    text = '[audit]\njsonl_path = "audit.jsonl"\n[telemetry]\ntraces = true\n'
    own = '[profile.own.audit]\njsonl_path = "own.jsonl"\n'
    (tmp_path / "axolotl.toml").write_text(text + own, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    async with connect(container_with((greet,)), settings="axolotl.toml") as client:
        assert (await client.call("greet")).text == "hello"
    assert not (tmp_path / "audit.jsonl").exists()
    async with connect(container_with((greet,)), settings="axolotl.toml", profile="own") as client:
        assert (await client.call("greet")).text == "hello"
    assert (tmp_path / "own.jsonl").exists()


async def test_connect_takes_the_form_of_the_file() -> None:
    """Settings as a mapping may have everything that a settings file has."""
    settings = {"target": "a:B", "authorization": {"default": "deny"}, "profile": {"open": {"authorization": {}}}}
    settings["profile"]["open"]["authorization"]["default"] = "allow"  # type: ignore[index]
    async with connect(container_with((greet,)), settings=settings, profile="open") as client:
        assert (await client.call("greet")).text == "hello"


async def test_the_environment_does_not_leak_into_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the shell have no effect on `connect`."""
    monkeypatch.setenv("AXOLOTL_AUTHORIZATION__DEFAULT", "deny")
    monkeypatch.setenv("AXOLOTL_HTTP__PROT", "1")
    async with connect(container_with((greet,)), principal=Principal("ada")) as client:
        assert (await client.call("greet")).text == "hello"
