"""`.env` files: syntax and errors."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import ConfigurationError
from axolotl_server.settings.environment import EnvFile, read_env_file

PRINTABLE = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0"), max_size=12
)


def read(directory: Path, text: str) -> EnvFile:
    """Write a file and read it."""
    path = directory / ".env"
    path.write_text(text, encoding="utf-8")
    return read_env_file(path)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("AXOLOTL_X=a", "a", id="plain"),
        pytest.param("export AXOLOTL_X=a", "a", id="export"),
        pytest.param(" AXOLOTL_X = a ", "a", id="spaces"),
        pytest.param("AXOLOTL_X=a # comment", "a", id="comment"),
        pytest.param("AXOLOTL_X=a#b", "a#b", id="no-comment"),
        pytest.param("AXOLOTL_X='a # b'", "a # b", id="single-quotes"),
        pytest.param('AXOLOTL_X="a\\nb"', "a\nb", id="escape"),
        pytest.param('AXOLOTL_X="a\nb"', "a\nb", id="two-lines"),
        pytest.param("AXOLOTL_X=", "", id="empty"),
        pytest.param("AXOLOTL_X=$HOME-${HOME}", "$HOME-${HOME}", id="nothing-is-expanded"),
        pytest.param("AXOLOTL_X=b\nAXOLOTL_X=a", "a", id="the-last-one-holds"),
        pytest.param('AXOLOTL_X=["a", "b"]', '["a", "b"]', id="json"),
        pytest.param("\ufeffAXOLOTL_X=a", "a", id="byte-order-mark"),
        pytest.param("AXOLOTL_X=a\r\n", "a", id="windows"),
    ],
)
def test_forms(tmp_path: Path, line: str, value: str) -> None:
    """The usual forms are supported."""
    assert read(tmp_path, line).variables == {"AXOLOTL_X": value}


def test_only_ours_are_read(tmp_path: Path) -> None:
    """Other variables are ignored, even invalid ones, and the process environment is not changed."""
    before = dict(os.environ)
    found = read(tmp_path, "SECRET=x\nbroken line here\n'\nNO_VALUE\nMY_AXOLOTL_X=1\nAXOLOTL_Y=2\naxolotl_z=3\n")
    assert found.variables == {"AXOLOTL_Y": "2", "axolotl_z": "3"}
    assert dict(os.environ) == before


def test_lines(tmp_path: Path) -> None:
    """Each variable has its line number, also after empty lines and multi-line values."""
    text = '# first\n\n\nAXOLOTL_A=1\nOTHER="x\ny"\n\nAXOLOTL_B="2\n3"\nAXOLOTL_C=4'
    assert read(tmp_path, text).lines == {"AXOLOTL_A": 4, "AXOLOTL_B": 8, "AXOLOTL_C": 10}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("AXOLOTL_AUDIT__KEY", id="no-value"),
        pytest.param("AXOLOTL_AUDIT__KEY canary", id="no-equals-sign"),
        pytest.param("AXOLOTL_AUDIT__KEY='canary", id="open-quote"),
        pytest.param('export AXOLOTL_AUDIT__KEY="canary" more', id="text-after-a-quote"),
    ],
)
def test_a_line_of_ours_that_cannot_be_read(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid line is reported by its number without its content, which may be a secret."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        read(tmp_path, f"\n{line}\n")
    (finding,) = refused.value.findings
    assert finding.startswith(".env:2 cannot be read")
    assert "canary" not in finding


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(None, "there is no such file", id="missing"),
        pytest.param(b"AXOLOTL_X=\xff", "not UTF-8", id="not-utf-8"),
        pytest.param(b"#" * (1024 * 1024 + 1), "more than 1048576 bytes", id="huge"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, text: str) -> None:
    """A file that was named explicitly must be readable."""
    path = tmp_path / "prod.env"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as refused:
        read_env_file(path)
    assert str(path) in str(refused.value)
    assert text in str(refused.value)


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    """A directory is reported."""
    with pytest.raises(ConfigurationError, match=r"it is not a regular file|it cannot be read"):
        read_env_file(tmp_path)


@given(st.dictionaries(st.from_regex(r"AXOLOTL_[A-Z_]{1,10}", fullmatch=True), PRINTABLE, max_size=5))
def test_a_quoted_value_is_read_unchanged(said: dict[str, str]) -> None:
    """A value in single quotes is read unchanged."""
    with pytest.MonkeyPatch.context() as patch:
        lines = [
            f"{name}='{value.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}'\n"
            for name, value in said.items()
        ]
        patch.setattr("axolotl_server.settings.environment.read_small", lambda path, limit: "".join(lines))
        assert read_env_file(Path(".env")).variables == said


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is either read or rejected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("axolotl_server.settings.environment.read_small", lambda path, limit: text)
        with suppress(ConfigurationError):
            assert all(name.upper().startswith("AXOLOTL_") for name in read_env_file(Path(".env")).variables)
