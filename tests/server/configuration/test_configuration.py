"""Sources of settings, their precedence, and errors."""

import os
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import ConfigurationError
from axolotl_server.settings.calls import ToolOverrides
from axolotl_server.settings.loading import load_settings, load_with_origins
from axolotl_server.settings.mistakes import ADVICE
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings, find_file
from tests.support.docs.settings_reference import all_settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings of the developer's environment."""
    for name in list(os.environ):
        if name.upper().startswith("AXOLOTL_"):
            monkeypatch.delenv(name)


def from_file(**values: Any) -> FileSettings:
    """Load settings from a file."""
    return FileSettings(path=Path("axolotl.toml"), values=values)


def findings_of(**sources: Any) -> list[str]:
    """Collect the problems of settings."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(**sources)
    return list(refused.value.findings)


@pytest.mark.parametrize(
    ("speaking", "port"),
    [
        pytest.param([], 8000, id="nobody"),
        pytest.param(["container"], 1, id="container"),
        pytest.param(["container", "file"], 2, id="file-beats-container"),
        pytest.param(["container", "file", "environment"], 3, id="environment-beats-file"),
        pytest.param(["container", "file", "environment", "flags"], 4, id="flags-beat-all"),
        pytest.param(["container", "flags"], 4, id="flags-beat-container"),
        pytest.param(["container", "environment"], 3, id="environment-beats-container"),
        pytest.param(["file", "flags"], 4, id="flags-beat-file"),
    ],
)
def test_the_first_source_with_a_value_wins(speaking: list[str], port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags override the environment, then the file, the container and the defaults."""
    if "environment" in speaking:
        monkeypatch.setenv("AXOLOTL_HTTP__PORT", "3")
    settings = load_settings(
        flags={"http": {"port": 4}} if "flags" in speaking else None,
        file=from_file(http={"port": 2}) if "file" in speaking else None,
        container={"http": {"port": 1}} if "container" in speaking else None,
    )
    assert settings.http.port == port


def test_sources_are_merged_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are merged key by key."""
    monkeypatch.setenv("AXOLOTL_HTTP__HOST", "from-environment")
    monkeypatch.setenv("AXOLOTL_SERVER__TITLE", "Title")
    settings = load_settings(
        flags={"http": {"port": 4}},
        file=from_file(http={"path": "/file", "host": "from-file"}, server={"name": "from-file"}),
        container={"http": {"keep_alive_seconds": 9, "path": "/container"}},
    )
    http = settings.http
    assert (http.port, http.host, http.path, http.keep_alive_seconds) == (4, "from-environment", "/file", 9.0)
    assert (http.request_timeout_seconds, settings.log_level) == (30.0, "info")
    assert (settings.server.title, settings.server.name) == ("Title", "from-file")


@pytest.mark.parametrize(
    ("variable", "value", "place", "expected"),
    [
        pytest.param("AXOLOTL_LOG_LEVEL", "debug", "log_level", "debug", id="root"),
        pytest.param("axolotl_http__port", "7", "http.port", 7, id="lower-case"),
        pytest.param("AXOLOTL_HTTP", '{"port": 7}', "http.port", 7, id="section-as-json"),
        pytest.param("AXOLOTL_HTTP__ALLOWED_HOSTS", '["a"]', "http.allowed_hosts", ("a",), id="list-as-json"),
        pytest.param("AXOLOTL_TOOLS__COERCE_ARGUMENTS", "true", "tools.coerce_arguments", True, id="boolean"),
        pytest.param(
            "AXOLOTL_TOOLS__ECHO",
            '{"enabled": false}',
            "tools.overrides",
            {"echo": ToolOverrides(enabled=False)},
            id="tool",
        ),
        pytest.param("AXOLOTL_LIMITS__TIMEOUT_SECONDS", "2.5", "limits.timeout_seconds", 2.5, id="number"),
        pytest.param("AXOLOTL_HTTP__WORKER_TIMEOUT_SECONDS", "null", "http.worker_timeout_seconds", None, id="null"),
        pytest.param("OTHER_HTTP__PORT", "7", "http.port", 8000, id="other-prefix"),
    ],
)
def test_the_environment_is_read(
    variable: str, value: str, place: str, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable names section and key; lists and sections can be JSON, and null turns a setting off."""
    monkeypatch.setenv(variable, value)
    assert attrgetter(place)(load_settings()) == expected


def test_a_tool_can_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`AXOLOTL_TOOLS__<NAME>__<KEY>` sets a key of one tool."""
    monkeypatch.setenv("AXOLOTL_TOOLS__GETUSER__TIMEOUT_SECONDS", "5")
    monkeypatch.setenv("AXOLOTL_TOOLS__GETUSER__ENABLED", "false")
    assert load_settings().tools.overrides_for("getUser") == ToolOverrides(timeout_seconds=5, enabled=False)


def test_a_tool_can_be_set_in_a_file() -> None:
    """`[tools.<name>]` sets keys of one tool."""
    settings = load_settings(file=from_file(tools={"getUser": {"max_concurrency": 2}, "coerce_arguments": True}))
    assert settings.tools.overrides_for("getUser") == ToolOverrides(max_concurrency=2)
    assert settings.tools.coerce_arguments


def test_sources_that_spell_a_tool_differently_mean_the_same_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tool names in the environment are case-insensitive, and override the file key by key."""
    monkeypatch.setenv("AXOLOTL_TOOLS__GETUSER__TIMEOUT_SECONDS", "5")
    settings = load_settings(
        flags={"tools": {"GetUser": {"queue_limit": 3}}},
        file=from_file(tools={"getUser": {"timeout_seconds": 3, "enabled": False}}),
        container={"tools": {"GETUSER": {"timeout_seconds": 1, "max_concurrency": 7}}},
    )
    assert settings.tools.overrides_for("getUser") == ToolOverrides(
        timeout_seconds=5, enabled=False, queue_limit=3, max_concurrency=7
    )


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        pytest.param({"htpp": {"port": 1}}, "Setting htpp is unknown; did you mean 'http'?", id="section"),
        pytest.param({"http": {"prot": 1}}, "Setting http.prot is unknown; did you mean 'port'?", id="key"),
        pytest.param({"loglevel": "info"}, "Setting loglevel is unknown; did you mean 'log_level'?", id="root-key"),
        pytest.param({"http": {"zzz": 1}}, "Setting http.zzz is unknown", id="nothing-near"),
        pytest.param({"http": {"[key]": 1}}, "Setting http.[key] is unknown", id="in-brackets"),
        pytest.param(
            {"tools": {"echo": {"timout_seconds": 1}}},
            "Setting tools.echo.timout_seconds is unknown; did you mean 'timeout_seconds'?",
            id="override",
        ),
        pytest.param(
            {"tools": {"coerce_argument": "true"}},
            "Setting tools.coerce_argument: must be a table; did you mean 'coerce_arguments'?",
            id="key-taken-for-a-tool",
        ),
        pytest.param(
            {"http": {"host_file": "/x"}},
            "Setting http.host_file is unknown; only secrets are read from files",
            id="file-of-no-secret",
        ),
    ],
)
def test_an_unknown_key_is_reported_with_the_nearest_valid_one(values: dict[str, Any], finding: str) -> None:
    """An unknown key is reported with its location, its source and the nearest valid key."""
    assert findings_of(file=from_file(**values)) == [f"{finding} (axolotl.toml)"]
    assert findings_of(flags=values) == [f"{finding} (argument)"]
    assert findings_of(container=values) == [f"{finding} (container)"]


@pytest.mark.parametrize(
    ("variable", "finding"),
    [
        pytest.param("AXOLOTL_HTTP__PROT", "Setting http.prot is unknown; did you mean 'port'?", id="key"),
        pytest.param(
            "AXOLOTL_TOOLS__COERCE_ARGUMENT",
            "Setting tools.coerce_argument: must be a table; did you mean 'coerce_arguments'?",
            id="key-or-tool",
        ),
        pytest.param("AXOLOTL_TOOLSETS__BILLING", "Setting toolsets.billing: must be a table", id="no-table"),
    ],
)
def test_an_unknown_key_in_the_environment(variable: str, finding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled variable of a known section is reported like any other key."""
    monkeypatch.setenv(variable, "exact")
    assert findings_of() == [f"{finding} (environment {variable})"]


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        pytest.param(
            {"http": {"max_headers": 5}}, "Setting http.max_headers is unknown; its value is fixed now", id="fixed"
        ),
        pytest.param({"auth": {"jwks_file": "/k"}}, "Setting auth.jwks_file is unknown; use auth.jwks", id="renamed"),
        pytest.param(
            {"tools": {"name_matching": "exact"}},
            "Setting tools.name_matching: must be a table; the case of tool names is always ignored",
            id="taken-for-a-tool",
        ),
        pytest.param(
            {"toolsets": {"billing": {"pool": "one"}}},
            "Setting toolsets.billing.pool is unknown; set it in the code of the tool",
            id="of-a-tool-set",
        ),
    ],
)
def test_an_old_name_is_reported_with_what_replaces_it(values: dict[str, Any], finding: str) -> None:
    """The name of a setting that there was once is an error that says what to do."""
    assert [found.startswith(finding) for found in findings_of(file=from_file(**values))] == [True]


def test_an_old_name_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a variable."""
    monkeypatch.setenv("AXOLOTL_SESSIONS__STREAM_REPLIES", "true")
    assert findings_of() == [
        'Setting sessions.stream_replies is unknown; use sessions.resumable = "replies" '
        "(environment AXOLOTL_SESSIONS__STREAM_REPLIES)"
    ]


def test_old_names_are_no_settings() -> None:
    """No current setting is in the table of old names."""
    current = {setting.name.replace("<name>", "*") for setting in all_settings()}
    assert current.isdisjoint(ADVICE)


def test_all_invalid_values_are_reported_at_once() -> None:
    """All invalid values are reported at once, each with its location and the expected type."""
    findings = findings_of(flags={"http": {"port": "x"}, "limits": {"threads": 0}, "log_level": "loud"})
    assert findings == [
        "Setting http.port: Input should be a valid integer, unable to parse string as an integer (flag --port)",
        "Setting limits.threads: Input should be greater than 0 (argument)",
        "Setting log_level: Input should be 'debug', 'info', 'warning' or 'error' (flag --log-level)",
    ]


def test_a_section_must_be_a_table() -> None:
    """`http = 5` is an invalid value, not a crash."""
    assert findings_of(file=from_file(http=5)) == ["Setting http: must be a table (axolotl.toml)"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param("AXOLOTL_HTTP", '{"port": 7', id="broken-json"),
        pytest.param("AXOLOTL_HTTP", "canary", id="section-without-json"),
        pytest.param("AXOLOTL_HTTP__ALLOWED_HOSTS", "a,b", id="list-without-json"),
    ],
)
def test_an_unreadable_variable_is_reported(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable variable is reported with the expected form, but without its value."""
    monkeypatch.setenv(variable, value)
    (finding,) = findings_of()
    assert finding.startswith(f"{variable} cannot be read: write lists and tables as JSON")
    assert finding.endswith(f"(environment {variable})")
    assert value not in finding


def test_an_invalid_value_in_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of the environment are validated like all others."""
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "eighty")
    assert findings_of()[0].startswith("Setting http.port: Input should be a valid integer")


def write(directory: Path, name: str, text: str) -> None:
    """Write a settings file."""
    (directory / name).write_text(text, encoding="utf-8")


def test_no_file_has_no_settings(tmp_path: Path) -> None:
    """A directory without a settings file has no file settings."""
    assert find_file(tmp_path) == FileSettings()
    write(tmp_path, "pyproject.toml", '[tool.other]\nport = 1\n[project]\nname = "x"')
    assert find_file(tmp_path) == FileSettings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "axolotl.toml",
            'target = "acme:Container"\ntoolset = "admin"\n[http]\nport = 9\n[tools.echo]\nenabled = false',
            id="own",
        ),
        pytest.param(
            "pyproject.toml",
            '[tool.axolotl]\ntarget = "acme:Container"\ntoolset = "admin"\n'
            "[tool.axolotl.http]\nport = 9\n[tool.axolotl.tools.echo]\nenabled = false",
            id="project",
        ),
    ],
)
def test_a_file_gives_target_toolset_and_settings(name: str, text: str, tmp_path: Path) -> None:
    """A file contains the target, tool sets and settings."""
    write(tmp_path, name, text)
    found = find_file(tmp_path)
    assert (found.path, found.target, found.toolset) == (tmp_path / name, "acme:Container", "admin")
    assert found.values == {"http": {"port": 9}, "tools": {"echo": {"enabled": False}}}
    settings = load_settings(file=found)
    assert (settings.http.port, settings.tools.overrides_for("echo").enabled) == (9, False)


def test_the_own_file_hides_the_project(tmp_path: Path) -> None:
    """If there is an `axolotl.toml`, `pyproject.toml` is not read."""
    write(tmp_path, "axolotl.toml", "[http]\nport = 1")
    write(tmp_path, "pyproject.toml", "[tool.axolotl.http]\nport = 2\nhost = 'x'")
    assert find_file(tmp_path).values == {"http": {"port": 1}}


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        pytest.param("axolotl.toml", b"port = ", "is not valid TOML: ", id="syntax"),
        pytest.param("axolotl.toml", b"a = 1\na = 2", "is not valid TOML: ", id="key-twice"),
        pytest.param("axolotl.toml", b"a = '\xff'", "is not valid TOML: ", id="not-utf-8"),
        pytest.param("pyproject.toml", b"[tool", "is not valid TOML: ", id="project-syntax"),
        pytest.param("axolotl.toml", b"target = 5", "target must be a string", id="target"),
        pytest.param("axolotl.toml", b"toolset = ['a']", "toolset must be a string", id="toolset"),
        pytest.param("pyproject.toml", b"[tool]\naxolotl = 5", "tool.axolotl must be a table", id="no-table"),
    ],
)
def test_an_invalid_file_is_reported_by_name(name: str, content: bytes, text: str, tmp_path: Path) -> None:
    """An invalid file is reported with its path and the problem."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigurationError) as refused:
        find_file(tmp_path)
    assert str(tmp_path / name) in str(refused.value)
    assert text in str(refused.value)


def test_loading_changes_no_source() -> None:
    """Loading does not change its sources."""
    container = {"http": {"port": 1}, "tools": {"Echo": {"enabled": True}}}
    file = from_file(http={"host": "h"}, tools={"Echo": {"enabled": False}})
    load_settings(container=container, file=file, flags={"http": {"path": "/x"}})
    assert container == {"http": {"port": 1}, "tools": {"Echo": {"enabled": True}}}
    assert file.values == {"http": {"host": "h"}, "tools": {"Echo": {"enabled": False}}}


def test_loading_reads_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are not cached: two servers in one process can have different ones."""
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "1")
    first = load_settings()
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "2")
    assert (first.http.port, load_settings().http.port) == (1, 2)
    assert isinstance(first, ServerSettings)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"log_level": "DEBUG"},
        {"http": {"port": "1"}, "auth": {}},
        {"tools": {"echo": {"timeout_seconds": 3}}, "toolsets": {"a": {"max_concurrency": 1}}},
        {"quotas": {"rules": {"all": {"limit": 1, "window": "day"}}}},
    ],
    ids=lambda values: "-".join(values) or "nothing",
)
def test_sections_that_are_not_set_have_their_defaults(values: dict[str, Any]) -> None:
    """Only what is set is validated, and the result is the same as if everything was."""
    loaded, validated = load_settings(flags=values), ServerSettings.model_validate(values)
    assert loaded == validated
    assert loaded.model_dump() == validated.model_dump()
    assert loaded.auth.is_used is validated.auth.is_used


def test_sources_do_not_print_their_values() -> None:
    """Values may be secrets, so the objects that hold them do not show them."""
    file = from_file(audit={"key": "swordfish-swordfish"})
    assert "swordfish" not in f"{file!r}{load_with_origins(file=file)!r}"
