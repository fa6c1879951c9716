"""Origins in error messages: the file with its line, the variable, or the flag."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import ConfigurationError
from axolotl_server.settings.environment import EnvFile, unknown_variables
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.mistakes import lines_of
from axolotl_server.settings.settings_file import FileSettings, find_file


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove settings of the developer's environment, and use an empty directory."""
    for name in list(os.environ):
        if name.upper().startswith("AXOLOTL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def findings_of(**sources: Any) -> list[str]:
    """Collect the problems of settings."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(**sources)
    return list(refused.value.findings)


def findings_in(text: str, name: str = "axolotl.toml") -> list[str]:
    """Collect the problems of a settings file."""
    Path(name).write_text(text, encoding="utf-8")
    return findings_of(file=find_file(Path.cwd()))


def test_a_wrong_value_of_the_environment_is_not_blamed_on_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid value is reported for the source that set it, even if a file sets the same key."""
    monkeypatch.setenv("AXOLOTL_HTTP__PORT", "eighty")
    (finding,) = findings_in("[http]\nport = 1\n")
    assert finding.startswith("Setting http.port: Input should be a valid integer")
    assert finding.endswith("(environment AXOLOTL_HTTP__PORT)")


FILE = """
target = "acme:Container"
http.port = -1        # a dotted key
limits = { threads = 0 }

[htpp]
port = 1

[audit]
stderr = [
    "tool",
    "tol",
]
jsonl_path = 5
"max_bytes" = 0

[tools.getUser]
timeout_second = 1

[[authorization.rules]]
name = "a"
effect = "permit"

[[authorization.rules]]
effect = "allow"
[authorization.rules.who]
roles = []
"""

WRONG = {
    "http.port: Input should be greater than or equal to 0": 3,
    "limits.threads: Input should be greater than 0": 4,
    "htpp is unknown; did you mean 'http'?": 6,
    "audit.stderr: Input should be a valid boolean": 10,
    "audit.jsonl_path: must be a path": 14,
    "audit.max_bytes: Input should be greater than 0": 15,
    "tools.getuser.timeout_second is unknown; did you mean 'timeout_seconds'?": 18,
    "authorization.rules.0.effect: Input should be 'allow' or 'deny'": 22,
    "authorization.rules.1.name: Field required": 24,
    "authorization.rules.1.who.roles: Frozenset should have at least 1 item after validation, not 0": 27,
}


def test_lines() -> None:
    """A problem in a file is reported with its line, also in lists and inline tables."""
    assert sorted(findings_in(FILE)) == sorted(
        f"Setting {finding} (axolotl.toml:{line})" for finding, line in WRONG.items()
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('"3s"', "write 3 instead of '3s'"),
        ('"1.5 min"', "write 90 instead of '1.5 min'"),
        ('"250ms"', "write 0.25 instead of '250ms'"),
    ],
)
def test_durations(value: str, problem: str) -> None:
    """A duration with a unit is shown with the number to write instead."""
    place = "(axolotl.toml:2)"
    assert findings_in(f"[limits]\ntimeout_seconds = {value}\n") == [
        f"Setting limits.timeout_seconds: must be a number of seconds: {problem} {place}"
    ]


def test_no_duration() -> None:
    """Any other value is not shown, because it may be a secret."""
    assert findings_in('[limits]\ntimeout_seconds = "hunter2"\n') == [
        "Setting limits.timeout_seconds: must be a number of seconds, such as 30 (axolotl.toml:2)"
    ]


def test_lines_of_a_project() -> None:
    """Lines are reported for `pyproject.toml`, and other tables are ignored."""
    (finding,) = findings_in("[tool.other.http]\nport = 0\n[tool.axolotl]\nhttp.port = -1\n", "pyproject.toml")
    assert finding.endswith("(pyproject.toml:4)")


def test_an_invalid_tool_table_is_ignored() -> None:
    """An invalid `tool` table in `pyproject.toml` is ignored."""
    Path("pyproject.toml").write_text("tool = 5\n", encoding="utf-8")
    assert find_file(Path.cwd()) == FileSettings()


def test_a_problem_from_several_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """If values contradict each other, each is named with its origin."""
    monkeypatch.setenv("AXOLOTL_HTTP__SSE_PATH", "/a")
    assert findings_in('[http]\npath = "/a"\n') == [
        "Setting http: sse_path must differ from path "
        "(http.path: axolotl.toml:2; http.sse_path: environment AXOLOTL_HTTP__SSE_PATH)"
    ]


def test_a_problem_from_flags() -> None:
    """A problem in a table that flags set names these flags."""
    wrong = {"path": "/a", "sse_path": "/a"}
    assert findings_of(flags={"http": wrong}) == [
        "Setting http: sse_path must differ from path (http.path: flag --path; http.sse_path: argument)"
    ]
    (finding,) = findings_of(flags={"http": {"path": "/sse/messages"}}, container={"http": {"sse_path": "/sse"}})
    assert finding.endswith("(http.sse_path: container; http.path: flag --path)")


def test_a_missing_key_is_reported_with_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key is reported with its table, even an empty one."""
    monkeypatch.setenv("AXOLOTL_STDIO__PRINCIPAL", "{}")
    assert findings_of() == ["Setting stdio.principal.subject: Field required (environment AXOLOTL_STDIO__PRINCIPAL)"]


def test_a_name_that_may_not_be() -> None:
    """An invalid table name is reported as such."""
    (finding,) = findings_in('[quotas.rules."two words"]\nrate_per_second = 1\n')
    assert finding.startswith("Setting quotas.rules.two words: the name: String should match pattern")
    assert finding.endswith("(axolotl.toml:1)")


def test_problems_of_all_sources_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable variable does not hide other problems."""
    monkeypatch.setenv("AXOLOTL_HTTP__ALLOWED_HOSTS", "a,b")
    lines = {"AXOLOTL_AUTH__ISSUERS": 1, "AXOLOTL_LOG_LEVEL": 2, "AXOLOTL_AUDIT__KEY_FILE": 3}
    said = {"AXOLOTL_AUTH__ISSUERS": "tool", "AXOLOTL_LOG_LEVEL": "loud", "AXOLOTL_AUDIT__KEY_FILE": "/nowhere/key"}
    file = FileSettings(env_file=EnvFile(Path(".env").absolute(), said, lines))
    findings = findings_of(file=file, container={"http": {"port": -1}})
    assert [finding.rpartition("(")[2] for finding in findings] == [
        ".env:1)",
        "environment AXOLOTL_HTTP__ALLOWED_HOSTS)",
        ".env:3)",
        "container)",
        ".env:2)",
    ]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        pytest.param("AXOLOTL_HTPP__PORT", "; did you mean AXOLOTL_HTTP__PORT?", id="section"),
        pytest.param("AXOLOTL_HTTP_PORT", "; did you mean AXOLOTL_HTTP__PORT?", id="one-underscore"),
        pytest.param("AXOLOTL_LOGLEVEL", "; did you mean AXOLOTL_LOG_LEVEL?", id="top"),
        pytest.param("AXOLOTL_LOG_LEVEL__X", "; did you mean AXOLOTL_LOG_LEVEL?", id="in-a-value"),
        pytest.param("AXOLOTL_TARGE", "; did you mean AXOLOTL_TARGET?", id="of-the-commands"),
        pytest.param("AXOLOTL_AUDIT_KEY_FILE", "; did you mean AXOLOTL_AUDIT__KEY_FILE?", id="file-of-a-secret"),
        pytest.param(
            "AXOLOTL_TOOL__GREET__ENABLED", "; did you mean AXOLOTL_TOOLS__GREET__ENABLED?", id="name-of-a-tool"
        ),
        pytest.param("AXOLOTL_QQQQ", "", id="nothing-near"),
    ],
)
def test_an_unknown_variable(variable: str, text: str) -> None:
    """An unknown variable is reported with the nearest valid one."""
    assert list(unknown_variables([variable, "OTHER"], ["AXOLOTL_TARGET"])) == [
        f"The variable {variable} is unknown and ignored{text}"
    ]


@pytest.mark.parametrize(
    "variable", ["AXOLOTL_HTTP__PORT", "axolotl_http__port", "AXOLOTL_TARGET", "AXOLOTL_LIMITS", "AXOLOTL_HTTP__PROT"]
)
def test_a_known_variable(variable: str) -> None:
    """A known variable with an invalid value is not reported as unknown."""
    assert list(unknown_variables([variable], ["AXOLOTL_TARGET"])) == []


PLAIN = ["1", '"x"', "true", "{ a = 1, b = { c = 2 } }", "[1, [2, 3]]"]
LONG = ['"""\n[fake]\nx = 1\n"""', "'''\n[[fake]]\n'''", "[\n  1,\n  # no statement = 5\n  2,\n]", "[\n{ a = 1 },\n]"]
BETWEEN = st.lists(st.sampled_from(["", "  ", "# x = 1", "\t# [fake]"]), max_size=2)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, dict[tuple[Any, ...], int]]:
    """Write a TOML file and record the lines of its tables and keys."""
    lines: list[str] = []
    noted: dict[tuple[Any, ...], int] = {}
    counts: dict[str, int] = {}
    tables = draw(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=6, unique_by=lambda one: one[0]))
    repeated = [one for one in tables for _ in range(draw(st.integers(1, 2)) if one[1] else 1)]
    for name, is_list in [("", False), *repeated]:
        place: tuple[Any, ...] = ()
        if name:
            lines += draw(BETWEEN)
            lines.append(f"[[{name}]]  # one" if is_list else f' [ "{name}" . t ]')
            place = (name, counts.get(name, 0)) if is_list else (name, "t")
            counts[name] = counts.get(name, 0) + 1
            noted[place] = len(lines)
        for key in draw(st.lists(st.sampled_from(["k", "long-key", "q r"]), max_size=3, unique=True)):
            lines += draw(BETWEEN)
            noted[(*place, key)] = len(lines) + 1
            lines += f'"{key}" = {draw(st.sampled_from(PLAIN + LONG))}'.split("\n")
    return "\n".join(lines), noted


@given(files())
def test_every_key_has_its_line(written: tuple[str, dict[tuple[Any, ...], int]]) -> None:
    """The line of each key and table is found in any file."""
    text, noted = written
    tomllib.loads(text)
    found = lines_of(text)
    assert {keys: found.get(keys) for keys in noted} == noted
