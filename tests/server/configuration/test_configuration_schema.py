"""The JSON schema of the settings file."""

import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from axolotl_core import ConfigurationError
from axolotl_server.settings.file_schema import descriptions_of, file_schema
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.section import Section
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings
from axolotl_server.settings.transports import HttpSettings
from tests.support.docs.pages import EXAMPLES

FILES = sorted(file for file in EXAMPLES.rglob("*.toml") if file.name != "pyproject.toml")


@pytest.fixture(scope="module")
def schema() -> Any:
    """The schema."""
    return file_schema()


@pytest.fixture(scope="module")
def validator(schema: Any) -> Any:
    """A validator for files."""
    return jsonschema_rs.validator_for(schema)


def test_it_is_a_schema(schema: Any) -> None:
    """The schema is valid in its own dialect."""
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(schema)
    assert isinstance(jsonschema_rs.validator_for(schema), jsonschema_rs.Draft202012Validator)


def test_it_describes_everything(schema: Any) -> None:
    """All sections, the target and tool sets are included, and every key has a description."""
    assert set(schema["properties"]) == {"target", "toolset", "profile", *ServerSettings.model_fields}
    nameless = [
        f"{name}.{key}"
        for name, definition in schema["$defs"].items()
        for key, field in definition["properties"].items()
        if not field.get("description")
    ]
    assert nameless == []


@pytest.mark.parametrize("file", [pytest.param(file, id=str(file.relative_to(EXAMPLES))) for file in FILES])
def test_examples(file: Path, validator: Any) -> None:
    """Every settings file of the documentation is valid."""
    validator.validate(tomllib.loads(file.read_text(encoding="utf-8")))


RULE = {"name": "a", "effect": "allow"}


@pytest.mark.parametrize(
    ("said", "is_right"),
    [
        ({}, True),
        ({"target": "a:B", "toolset": "a,b", "log_level": "info"}, True),
        ({"target": 5}, False),
        ({"htpp": {}}, False),
        ({"http": {"prot": 1}}, False),
        ({"http": {"port": 70000}}, False),
        ({"http": {"port": "x"}}, False),
        ({"http": 5}, False),
        ({"limits": {"timeout_seconds": 0}}, False),
        ({"limits": {"timeout_seconds": 3}}, True),
        ({"log_level": "loud"}, False),
        ({"tools": {"echo": {"timeout_seconds": 1}, "coerce_arguments": True}}, True),
        ({"tools": {"echo": {"timout_seconds": 1}}}, False),
        ({"tools": {"coerce_arguments": "fuzzy"}}, False),
        ({"toolsets": {"a": {"max_concurrency": 1}}}, True),
        ({"toolsets": {"a": {"enabled": True}}}, False),
        ({"quotas": {"rules": {"a": {"rate_per_second": 1}}}}, True),
        ({"quotas": {"rules": {"a": {"rate": 1}}}}, False),
        ({"authorization": {"rules": [RULE]}}, True),
        ({"authorization": {"rules": [{"name": "a"}]}}, False),
        ({"audit": {"key": "0123456789abcdef"}}, True),
        ({"audit": {"key": "short"}}, False),
        ({"audit": {"key_file": "/run/secrets/key"}}, True),
        ({"audit": {"key_file": 5}}, False),
        ({"audit": {"key_file": ["/run/secrets/key"]}}, False),
        ({"audit": {"key": "0123456789abcdef", "key_file": "/run/secrets/key"}}, False),
        ({"protocol": {"state_keys_file": "/a"}}, True),
        ({"protocol": {"state_keys_file": ["/a", "/b"]}}, True),
        ({"protocol": {"state_keys_file": []}}, False),
        ({"http": {"host_file": "/a"}}, False),
    ],
    ids=str,
)
def test_it_agrees_with_the_server(
    said: dict[str, Any], is_right: bool, validator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema accepts and rejects the same files as the server."""
    monkeypatch.setattr("axolotl_server.settings.secret_files.read_small", lambda path, limit: "0123456789abcdef")
    assert validator.is_valid(said) is is_right
    values = {key: value for key, value in said.items() if key not in ("target", "toolset")}
    if values == said:
        assert _is_accepted(values) is is_right


def _is_accepted(values: dict[str, Any]) -> bool:
    try:
        load_settings(file=FileSettings(values=values))
    except ConfigurationError:
        return False
    return True


def test_meanings() -> None:
    """The docstring of a field is its description, on one line."""
    assert descriptions_of(HttpSettings)["port"] == "The port to listen on. 0 picks a free port."


class _Parent(Section):
    first: int = 1
    """Of the
    parent."""
    second: int = 2


class _Child(_Parent):
    second: int = 3
    """Of the child."""
    third: int = 4


def test_meanings_are_inherited() -> None:
    """Descriptions are inherited; a field without a docstring has none."""
    assert descriptions_of(_Child) == {"first": "Of the parent.", "second": "Of the child."}
