"""Secrets: read from files in every source, and never shown."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from axolotl_core import ConfigurationError
from axolotl_server.settings.effective import MASK, effective_values, masked
from axolotl_server.settings.environment import EnvFile
from axolotl_server.settings.loading import LoadedSettings, load_settings, load_with_origins
from axolotl_server.settings.origins import flatten
from axolotl_server.settings.secret_files import SecretFile, UnreadableFile, find_secret_files, read_secret
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.settings_file import FileSettings
from axolotl_server.settings.settings_shape import SETTINGS, Shape, shape_of

CANARY = "canary-8b1f-and-longer-than-it-must-be"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings of the developer's environment."""
    for name in list(os.environ):
        if name.upper().startswith("AXOLOTL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """Write a secret into a file."""
    path = tmp_path / "secret"
    path.write_text(f"{CANARY}\n", encoding="utf-8")
    return str(path)


def findings_of(**sources: Any) -> list[str]:
    """Collect the problems of settings."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(**sources)
    return list(refused.value.findings)


def key_of(settings: ServerSettings) -> str | None:
    """Return the key of the audit."""
    return None if settings.audit.key is None else settings.audit.key.get_secret_value()


@pytest.mark.parametrize("source", ["flags", "environment", "env_file", "file", "container"])
def test_every_source_may_name_a_file(source: str, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source supports `<name>_file`."""
    sources: dict[str, Any] = {}
    if source == "environment":
        monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", secret)
    elif source == "env_file":
        variables = {"AXOLOTL_AUDIT__KEY_FILE": secret}
        sources["file"] = FileSettings(env_file=EnvFile(Path(".env"), variables, dict.fromkeys(variables, 1)))
    elif source == "file":
        sources["file"] = FileSettings(path=Path("axolotl.toml"), values={"audit": {"key_file": secret}})
    else:
        sources[source] = {"audit": {"key_file": Path(secret)}}
    assert key_of(load_settings(**sources)) == CANARY


@pytest.mark.parametrize("value", ["{path}", '["{path}"]', ["{path}"], ("{path}",)], ids=str)
def test_a_list_of_secrets(value: Any, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of secrets can have several files; in the environment as JSON."""
    if isinstance(value, str):
        monkeypatch.setenv("AXOLOTL_PROTOCOL__STATE_KEYS_FILE", value.format(path=secret))
        keys = load_settings().protocol.state_keys
    else:
        paths = type(value)([secret, secret])
        keys = load_settings(flags={"protocol": {"state_keys_file": paths}}).protocol.state_keys
        assert len(keys) == 2
    assert {key.get_secret_value() for key in keys} == {CANARY}


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        pytest.param(b"abc", "abc", id="bare"),
        pytest.param(b"abc\n", "abc", id="line-break"),
        pytest.param(b"abc\r\n", "abc", id="windows"),
        pytest.param(b"abc\n\n", "abc\n", id="one-line-break-only"),
        pytest.param(b" abc \n", " abc ", id="spaces-are-kept"),
        pytest.param(b"a\nb", "a\nb", id="several-lines"),
        pytest.param("ä€".encode(), "ä€", id="unicode"),
        pytest.param(b"x" * 64 * 1024, "x" * 64 * 1024, id="largest"),
    ],
)
def test_one_final_line_break_is_removed(content: bytes, secret: str, tmp_path: Path) -> None:
    """The secret is the content of the file without one final line break."""
    path = tmp_path / "secret"
    path.write_bytes(content)
    assert read_secret(path) == secret


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: not text.endswith("\r")))
def test_a_written_secret_comes_back(text: str) -> None:
    """Any secret survives being written with a line break."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("axolotl_server.settings.secret_files.read_small", lambda path, limit: f"{text}\n")
        assert read_secret("x") == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(None, "there is no such file", id="missing"),
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"\n", "it is empty", id="line-break"),
        pytest.param(b"\xff\xfe", "it is not UTF-8 text", id="binary"),
        pytest.param(b"x" * (64 * 1024 + 1), "it has more than 65536 bytes", id="too-large"),
    ],
)
def test_a_file_that_cannot_be_used(
    content: bytes | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unusable file is reported with its path, the setting and the source."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", str(path))
    assert findings_of() == [f"Setting audit.key_file: {path}: {text} (environment AXOLOTL_AUDIT__KEY_FILE)"]


def test_a_secret_must_be_a_regular_file(tmp_path: Path) -> None:
    """A pipe or a directory is not read."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(UnreadableFile, match=r"not a regular file|cannot be read"):
            read_secret(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_read_permission(tmp_path: Path) -> None:
    """A file without read permission is reported."""
    path = tmp_path / "secret"
    path.write_text(CANARY)
    path.chmod(0)
    with pytest.raises(UnreadableFile, match="it cannot be read: Permission denied"):
        read_secret(path)


@pytest.mark.parametrize("value", [5, {"path": "x"}, {}, [], ["a"], ["a", "b"], "", True, None], ids=str)
def test_a_secret_path_must_be_one_path(value: Any) -> None:
    """A `_file` setting of one secret must be one path."""
    assert findings_of(flags={"audit": {"key_file": value}})[0].startswith(
        "Setting audit.key_file: must be the path of a file"
    )


def test_a_secret_in_the_place_of_a_path_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret in place of a path is not shown in the error."""
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", CANARY)
    (finding,) = findings_of()
    assert finding == "Setting audit.key_file: there is no such file (environment AXOLOTL_AUDIT__KEY_FILE)"


def test_both_in_one_source(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret and its file from the same source are rejected, also in two variables."""
    (finding,) = findings_of(container={"audit": {"key_file": secret, "key": CANARY}})
    assert finding == "Setting audit.key_file: key is set too; set only one of them (container)"
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", secret)
    monkeypatch.setenv("AXOLOTL_AUDIT", f'{{"key": "{CANARY}"}}')
    (finding,) = findings_of()
    assert finding.endswith("key is set too; set only one of them (environment AXOLOTL_AUDIT__KEY_FILE)")


def test_the_source_with_higher_precedence_wins(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source with higher precedence wins, and the other file is not opened."""
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY", "of-the-environment")
    assert key_of(load_settings(container={"audit": {"key_file": "/nowhere/at/all"}})) == "of-the-environment"
    assert key_of(load_settings(flags={"audit": {"key_file": secret}})) == CANARY


def test_the_secret_is_checked_like_any_other(tmp_path: Path) -> None:
    """The content of the file is validated, and the error names the source of the path."""
    path = tmp_path / "short"
    path.write_text("short\n")
    (finding,) = findings_of(container={"audit": {"key_file": str(path)}})
    assert finding.startswith("Setting audit.key: ")
    assert finding.endswith("(container)")
    assert "short" not in finding.replace("too short", "")


class Key(BaseModel):
    """A table with a required secret."""

    name: str = ""
    secret: SecretStr


class Section(BaseModel):
    """A section with secrets in every possible place."""

    one: SecretStr | None = None
    many: tuple[SecretStr, ...] = ()
    named: dict[str, Key] = {}
    nested: Key | None = None
    plain_file: str = ""
    plain: str = ""


def test_secrets_are_found_wherever_they_are(secret: str) -> None:
    """Every secret of a model has a `_file` setting, also in tables, and nothing else has one."""
    table = {"secret_file": secret}
    said = {"one_file": secret, "many_file": [secret], "named": {"a": table}, "nested": table, "plain_file": secret}
    findings: list[str] = []
    source = flatten(said, lambda keys: pytest.fail("nothing is located"))
    found = find_secret_files(source, shape_of(Section), findings)
    assert findings == []
    assert {keys: sourced.value for keys, sourced in found.items()} == {
        ("one",): SecretFile(secret),
        ("many",): [SecretFile(secret)],
        ("named", "a", "secret"): SecretFile(secret),
        ("nested", "secret"): SecretFile(secret),
        ("plain_file",): secret,
    }
    assert found["named", "a", "secret"].written == ("named", "a", "secret_file")
    assert list(shape_of(Section).fields)[-2:] == ["one_file", "many_file"]


def secrets_of(table: Shape, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Find every secret of the settings with a fixed path, and whether it is a list."""
    for name, shape in table.fields.items():
        if shape.secret is not None:
            yield (*path, shape.secret), shape.items is not None
        yield from secrets_of(shape, (*path, name))


SECRETS = dict(secrets_of(SETTINGS))


@pytest.mark.parametrize("keys", [pytest.param(keys, id=".".join(keys)) for keys in SECRETS])
def test_every_secret_of_the_settings(keys: tuple[str, ...], secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every secret can be read from a file, and is never shown, whether accepted or rejected."""
    monkeypatch.setenv(f"AXOLOTL_{'__'.join(keys).upper()}_FILE", secret)
    loaded, findings = _load()
    assert CANARY not in findings
    assert "unknown" not in findings
    if loaded is None:  # it needs other settings too
        return
    shown = {value.keys: value for value in effective_values(loaded)}[keys]
    assert shown.value == ([MASK] if SECRETS[keys] else MASK)
    assert CANARY not in repr(list(effective_values(loaded)))
    assert CANARY not in repr(loaded)


def _load() -> tuple[LoadedSettings | None, str]:
    try:
        return load_with_origins(), ""
    except ConfigurationError as error:
        return None, str(error)


def test_there_are_secrets() -> None:
    """The previous test has secrets to check."""
    assert {("audit", "key"), ("protocol", "state_keys"), ("redis", "url")} <= SECRETS.keys()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (SecretStr("x"), MASK),
        ((SecretStr("x"), SecretStr("y")), [MASK, MASK]),
        ({"a": SecretStr("x")}, {"a": MASK}),
        (Key(secret=SecretStr("x")), {"name": "", "secret": MASK}),
        ("redis://user:canary@host:6379/0", f"redis://user:{MASK}@host:6379/0"),
        ("https://:canary@host", f"https://:{MASK}@host"),
        ("https://host/a:b@c", "https://host/a:b@c"),
        ("https://user@host", "https://user@host"),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Path("/x"), "/x"),
        (1.5, 1.5),
        (None, None),
    ],
)
def test_masks(value: Any, shown: Any) -> None:
    """Shown settings are JSON with masked secrets."""
    assert masked(value) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:canary@redis.example:6379/0", f"redis://user:{MASK}@redis.example:6379/0"),
        ("rediss://:canary@[::1]:6379", f"rediss://:{MASK}@[::1]:6379"),
        ("redis://user:can@ary@host", f"redis://user:{MASK}@host"),
        ("redis://user@host", "redis://user@host"),
        ("redis://host/0?password=canary", f"redis://host/0?{MASK}"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("postgresql://user:canary@a:5432,b:5433/tasks?x=1", f"postgresql://user:{MASK}@a:5432,b:5433/tasks?{MASK}"),
        ("sqlite:///tasks.db", "sqlite:///tasks.db"),
        ("redis://user:can/ary@host", MASK),
        ("redis://user:can?ary@host", MASK),
        ("redis://user:can#ary@host", MASK),
        ("redis://user:canary", MASK),
        ("host=a password=canary", MASK),
    ],
)
def test_secret_urls(url: str, shown: str) -> None:
    """Of a secret URL, scheme, user and host are shown, unless it is uncertain what its password is."""
    loaded = load_with_origins(flags={"redis": {"url": url}}, environment={})
    assert {value.name: value.value for value in effective_values(loaded)}["redis.url"] == shown


def test_of_tables_that_users_add_only_what_is_set_is_shown() -> None:
    """The settings of a tool are those that are set, and those of a section all that exist."""
    loaded = load_with_origins(flags={"tools": {"greet": {"queue_limit": 5}}}, environment={})
    shown = {value.name for value in effective_values(loaded)}
    assert {name for name in shown if name.startswith("tools.greet.")} == {"tools.greet.queue_limit"}
    assert {"http.port", "tools.coerce_arguments", "toolsets"} <= shown


@pytest.mark.parametrize(
    "said",
    [
        {"audit": {"key": CANARY, "max_bytes": CANARY}},
        {"audit": {"key": {"x": CANARY}}},
        {"audit": {"key": [CANARY]}},
        {"audit": CANARY},
        {"protocol": {"state_keys": CANARY}},
        {"redis": {"url": 5, "prefix": [CANARY]}},
        {"http": {"port": CANARY}},
        {"log_level": CANARY},
    ],
    ids=str,
)
def test_mistakes_show_no_values(said: dict[str, Any]) -> None:
    """Errors do not repeat invalid values, which may be misplaced secrets."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(container=said)
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_models_show_no_values_either() -> None:
    """Errors of settings that are created from the class do not show values either."""
    with pytest.raises(ValueError, match="audit") as refused:
        ServerSettings.model_validate({"audit": {"key": CANARY, "max_bytes": CANARY}})
    assert CANARY not in str(refused.value)
