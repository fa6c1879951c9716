"""Defaults that the pages quote are the defaults in the code."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from axolotl_cli import runtime
from axolotl_cli.serving import supervisor
from axolotl_core.arguments import LARGE_BYTES, MAX_PROBLEMS
from axolotl_core.protocol.client_text import MAX_ECHO
from axolotl_server import health
from axolotl_server.access import authorization, introspection, verifiers
from axolotl_server.audit import redaction
from axolotl_server.execution import outage_log
from axolotl_server.layers import quota
from axolotl_server.observation import metrics, tracebacks
from axolotl_server.settings import secret_files
from tests.api.recording import public_names
from tests.architecture.checkers import MAX_FILE_LINES, MAX_FUNCTION_LINES
from tests.support.docs.pages import page_names, read_page
from tests.support.docs.settings_reference import all_settings

SETTINGS: Final = {one.name: one.default for one in all_settings()}
PUBLIC: Final = {path.rpartition(".")[2]: found for path, found in public_names().items()}
UNITS: Final = {"": 1.0, "s": 1.0, "ms": 0.001, "minutes": 60.0, "KiB": 1024.0, "MiB": 1024.0**2}

FIGURES: Final = {
    "CONTRIBUTING.md": [
        f"at most {MAX_FILE_LINES} lines",
        f"at most {MAX_FUNCTION_LINES} lines",
    ],
    "docs/operate/audit.md": [
        f"every {outage_log._SILENT_SECONDS:g} seconds",
        f"larger than {redaction._MAX_BYTES // 1024} KiB",
    ],
    "docs/operate/authentication.md": [
        f"for {verifiers._SIGNATURE_CACHE_SECONDS / 60:g} minutes (`auth.token_cache_seconds`)",
        f"for {verifiers._INTROSPECTION_CACHE_SECONDS:g} seconds (`auth.token_cache_seconds`)",
        f"refusals are cached for {introspection._REFUSED_SECONDS:g} seconds",
    ],
    "docs/operate/authorization.md": [f"{authorization._MAX_CONCURRENT_DECISIONS} at once"],
    "docs/operate/health.md": [
        f"the process exits within {runtime._HURRIED_SECONDS:g} seconds",
        f"for {health._STALL_REMEMBERED_SECONDS:g} seconds after the event loop was blocked",
    ],
    "docs/operate/limits.md": [
        f"every {outage_log._SILENT_SECONDS:g} seconds",
        f"longer than {quota._MAX_PART_CHARACTERS} characters",
    ],
    "docs/operate/observability.md": [
        f"{metrics._MAX_SERIES:,} label combinations",
        f"one traceback per {tracebacks._SECONDS:g} seconds",
    ],
    "docs/operate/security.md": [f"at most {MAX_PROBLEMS} problems; in arguments over {LARGE_BYTES // 1024} KiB"],
    "docs/operate/settings.md": [f"up to {secret_files._MAX_BYTES // 1024} KiB"],
    "docs/reference/errors.md": [f"at most {MAX_ECHO} characters"],
    "docs/operate/workers.md": [
        f"for {supervisor._SHORT_LIFE_SECONDS:g} second,",
        f"up to {supervisor._LONGEST_PAUSE_SECONDS:g} seconds",
        f"{supervisor._MAX_FAILURES} workers in a row",
    ],
}
"""Limits that are not settings, as pages quote them."""

_NAME: Final = r"`([A-Za-z_]+(?:\.[\w<>]+)+)`"
_QUOTED: Final = re.compile(rf"{_NAME} \(default ([^),]+?)(?:, [^)]+)?\)")
_UNMARKED: Final = re.compile(rf"{_NAME}(?:,| is| of|:|, by default| defaults to)? (\d\S*)")
_ROW: Final = re.compile(rf"^\| {_NAME} \| ([^|]+?) \|", re.MULTILINE)
_TABLE: Final = re.compile(r"^\| Setting \| Default \|.*\n(?:\|.*\n)+", re.MULTILINE)


def _prose(page: str) -> str:
    """Return the text of a page on one line, without code and generated tables."""
    text = re.sub(r"^```.*?^```$|^<!-- (\w+):start -->.*?^<!-- \1:end -->$", "", read_page(page), flags=re.M | re.S)
    return re.sub(r"\s+", " ", text)


def _quoted(page: str) -> Iterator[tuple[str, str]]:
    yield from _QUOTED.findall(_prose(page))
    for table in _TABLE.findall(read_page(page)):
        yield from _ROW.findall(table)


def _default_of(name: str) -> Any:
    owner, _, attribute = name.partition(".")
    if not owner[0].isupper():
        default = SETTINGS[name]
        return None if default == "–" else json.loads(default.strip("`"))
    found = PUBLIC[owner]
    if issubclass(found, msgspec.Struct):
        return next(one.default for one in msgspec.structs.fields(found) if one.name == attribute)
    return getattr(found, attribute)


def _value(text: str) -> Any:
    """Parse a default: a literal in backticks, a number with its unit, or – for none."""
    if text.startswith("`"):
        return json.loads(text.strip("`"))
    number, _, unit = text.replace(",", "").partition(" ")
    return None if text == "–" else float(number) * UNITS[unit]


@pytest.mark.parametrize("page", page_names())
def test_defaults(page: str) -> None:
    """`section.key` (default 30 s), `Class.attribute` (default 3) and tables of settings show the real defaults."""
    assert {name: text for name, text in _quoted(page) if _value(text) != _default_of(name)} == {}


def test_defaults_are_found() -> None:
    """The pattern finds the defaults on the pages."""
    assert sum(len(list(_quoted(page))) for page in page_names()) > 20


@pytest.mark.parametrize("page", page_names())
def test_numbers_are_marked(page: str) -> None:
    """A number after the name of a setting is written as a default, so that the test above finds it."""
    assert [name for name, _ in _UNMARKED.findall(_prose(page)) if name in SETTINGS] == []


@pytest.mark.parametrize(("page", "figures"), FIGURES.items())
def test_figures(page: str, figures: list[str]) -> None:
    """Fixed limits match the code."""
    assert [figure for figure in figures if figure not in _prose(page)] == []


@pytest.mark.parametrize("page", page_names())
def test_settings_exist(page: str) -> None:
    """A name in backticks that begins with a section is a setting or a table of settings."""
    keys = [name.replace("[]", "").split(".") for name in SETTINGS]
    known = {".".join(one[:count]) for one in keys for count in range(1, len(one) + 1)}
    sections = {one[0] for one in keys if len(one) > 1}
    named = re.findall(r"`(([a-z_]+)(?:\.[a-z_<>]+)+)(?<!\.json)(?<!\.lock)`", _prose(page))
    assert [name for name, section in named if section in sections and name not in known] == []
