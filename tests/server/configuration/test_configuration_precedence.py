"""Precedence of settings and their origins."""

import json
import os
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_server.settings.environment import EnvFile
from axolotl_server.settings.loading import load_with_origins
from axolotl_server.settings.origins import Origin, Source
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings

LAYERS = (Source.CONTAINER, Source.FILE, Source.ENV_FILE, Source.ENVIRONMENT, Source.FLAG)
"""From lowest to highest precedence."""

WORDS = st.text("abcxyz", min_size=1, max_size=5)
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "http.port": st.integers(0, 65535),
    "http.host": WORDS,
    "http.allowed_hosts": st.lists(WORDS, max_size=3).map(tuple),
    "limits.timeout_seconds": st.integers(1, 900).map(float),
    "sessions.resumable": st.sampled_from(["off", "streams", "replies"]),
    "server.name": WORDS,
    "audit.key": st.text("0123456789", min_size=16, max_size=20),
    "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
}
SPEECH = st.fixed_dictionaries({}, optional=dict(VALUES))
SourcedValue = Mapping[str, Any]


@pytest.fixture(autouse=True)
def _no_environment() -> Iterator[None]:
    """Remove settings of the developer's environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().startswith("AXOLOTL_"):
                patch.delenv(name)
        yield


def nested(said: SourcedValue) -> dict[str, Any]:
    """Convert settings to tables."""
    tables: dict[str, Any] = {}
    for name, value in said.items():
        *sections, key = name.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    return tables


def variables(said: SourcedValue) -> dict[str, str]:
    """Convert settings to environment variables."""
    return {
        f"AXOLOTL_{name.upper().replace('.', '__')}": value if isinstance(value, str) else json.dumps(value)
        for name, value in said.items()
    }


@given(speech=st.fixed_dictionaries(dict.fromkeys(LAYERS, SPEECH)))
def test_the_highest_precedence_wins(speech: Mapping[Source, SourcedValue]) -> None:
    """Each setting has the value of the source with the highest precedence, which is its origin."""
    in_env_file = variables(speech[Source.ENV_FILE])
    file = FileSettings(
        path=Path("axolotl.toml"),
        values=nested(speech[Source.FILE]),
        env_file=EnvFile(Path(".env"), in_env_file, dict.fromkeys(in_env_file, 1)),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(speech[Source.ENVIRONMENT]).items():
            patch.setenv(name, value)
        loaded = load_with_origins(
            flags=nested(speech[Source.FLAG]), file=file, container=nested(speech[Source.CONTAINER])
        )
    for name in VALUES:
        heard = next((layer for layer in reversed(LAYERS) if name in speech[layer]), Source.DEFAULT)
        value = attrgetter(name)(ServerSettings()) if heard is Source.DEFAULT else speech[heard][name]
        held = attrgetter(name)(loaded.settings)
        assert (held.get_secret_value() if name == "audit.key" and held else held) == value
        assert loaded.origin_of(tuple(name.split("."))).source is heard


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """An origin names the flag, the variable or the line."""
    monkeypatch.setenv("AXOLOTL_HTTP__HOST", "a")
    monkeypatch.setenv("AXOLOTL_LIMITS", '{"threads": 3}')
    env_file = EnvFile(Path("/x/prod.env"), {"AXOLOTL_HTTP__PATH": "/b"}, {"AXOLOTL_HTTP__PATH": 7})
    loaded = load_with_origins(
        flags={"http": {"port": 1}, "tasks": {"maximum": 2}},
        file=FileSettings(env_file=env_file),
        container={"server": {"name": "c"}},
    )
    named = {
        ("http", "port"): (Origin(Source.FLAG, "--port"), "flag --port"),
        ("tasks", "maximum"): (Origin(Source.FLAG), "argument"),
        ("http", "host"): (Origin(Source.ENVIRONMENT, "AXOLOTL_HTTP__HOST"), "environment AXOLOTL_HTTP__HOST"),
        ("limits", "threads"): (Origin(Source.ENVIRONMENT, "AXOLOTL_LIMITS"), "environment AXOLOTL_LIMITS"),
        ("http", "path"): (Origin(Source.ENV_FILE, "/x/prod.env:7"), "/x/prod.env:7"),
        ("server", "name"): (Origin(Source.CONTAINER), "container"),
        ("server", "title"): (Origin(Source.DEFAULT), "default"),
    }
    assert {keys: loaded.origin_of(keys) for keys in named} == {keys: origin for keys, (origin, _) in named.items()}
    assert [str(origin) for origin, _ in named.values()] == [text for _, text in named.values()]


def test_a_single_key_beats_a_section_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment, a more specific variable overrides a section in JSON."""
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "2")
    monkeypatch.setenv("AXOLOTL_HTTP", '{"port": 1, "host": "h"}')
    loaded = load_with_origins()
    assert (loaded.settings.http.port, loaded.settings.http.host) == (2, "h")
    assert loaded.origin_of(("http", "port")).place == "AXOLOTL_HTTP__PORT"
    assert loaded.origin_of(("http", "host")).place == "AXOLOTL_HTTP"


def test_an_empty_table_overrides_nothing() -> None:
    """An empty table does not override anything."""
    assert load_with_origins(flags={"http": {}}, container={"http": {"port": 1}}).settings.http.port == 1


def test_a_list_is_replaced_as_a_whole() -> None:
    """Lists are replaced as a whole."""
    rule = {"name": "a", "effect": "allow"}
    settings = load_with_origins(
        flags={"authorization": {"rules": [rule]}},
        container={"authorization": {"rules": [{**rule, "name": "b"}, {**rule, "name": "c"}]}},
    ).settings
    assert [one.name for one in settings.authorization.rules] == ["a"]


def test_the_names_of_tool_sets_are_not_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """`AXOLOTL_TOOLSETS` selects tool sets; limits of a tool set have a longer name."""
    monkeypatch.setenv("AXOLOTL_TOOLSETS", "billing")
    monkeypatch.setenv("AXOLOTL_TOOLSETS__BILLING__MAX_CONCURRENCY", "3")
    assert load_with_origins().settings.toolsets["billing"].max_concurrency == 3


def test_settings_look_nowhere_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that are created from the class do not read the environment."""
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "1")
    assert ServerSettings().http.port == 8000
    assert ServerSettings.model_validate({"http": {"host": "h"}}).http.port == 8000
