"""Tables that are generated from the code; `python -m tests.docs` updates them."""

import re
from typing import Any

from typer.main import get_command

from axolotl_cli.app import app
from axolotl_core import AxolotlError, ITool, errors
from axolotl_core.features.feature import IFeature
from axolotl_core.protocol.versions import REVISIONS
from axolotl_server.hosting.roles import ROLES
from axolotl_server.settings.server import COMMON
from benchmarks.scenarios import SCENARIOS
from tests.api.recording import public_names
from tests.site.generated import GENERATED, MARKER
from tests.support.docs.pages import ROOT, blocks, page_names, read_page
from tests.support.docs.settings_reference import PAGES, all_settings
from tests.support.docs.tables import (
    described_features,
    feature_names,
)


def test_markers() -> None:
    """Every marker stands for a part of the reference or the options of a command, and no part is left out."""
    named = [name for page in page_names() for name in MARKER.findall(read_page(page))]
    parts = {name for name in named if not name.startswith("help ")}
    assert parts == set(GENERATED)
    assert [name for name in named if name not in parts and name.removeprefix("help ") not in commands()] == []


def test_every_setting_is_on_one_page() -> None:
    """Every section is on exactly one page, and the page about settings names it."""
    sections = sorted(section for page in PAGES.values() for section in page)
    assert sections == sorted({one.name.partition(".")[0] if "." in one.name else "" for one in all_settings()})
    about = read_page("docs/operate/settings.md").partition("## All settings")[2]
    rows = re.findall(r"\(\.\./reference/(.+)\.md\) \| (.+) \|", about)
    assert {page: tuple(re.findall(r"`(\w+)`", names)) for page, names in rows} == {
        page: tuple(filter(None, names)) for page, names in PAGES.items()
    }


def test_common_settings_exist() -> None:
    """The common settings are 25 that exist, or tables."""
    found = [one for one in COMMON if any(re.match(rf"{re.escape(one)}($|[.[])", each.name) for each in all_settings())]
    assert len(found) == len(COMMON) == 25


def test_settings_have_a_meaning() -> None:
    """Every setting has a description."""
    assert [one.name for one in all_settings() if not one.meaning] == []


def test_attributes() -> None:
    """The page about tools explains every attribute of a tool."""
    page = read_page("docs/guide/tools.md").partition("### Attributes")[2].partition("\n## ")[0]
    explained = {
        name for row in re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    declared = {*IFeature.__annotations__, *ITool.__annotations__} - {"input_model", "output_model"}
    assert {name for name in declared if not name.startswith("_")} <= explained


def test_roles() -> None:
    """The page about containers explains every role."""
    page = read_page("docs/guide/containers.md").partition("## Roles")[2].partition("\n## ")[0]
    explained = {
        name for row in re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    assert ROLES.keys() <= explained


def test_revisions() -> None:
    """The table of revisions has every feature that they differ in."""
    assert described_features() == feature_names()


def test_list_of_revisions() -> None:
    """The first page and the page about the protocol name all revisions."""
    names = [revision.name for revision in REVISIONS]
    rows = re.findall(r"^\| `(\d{4}-\d\d-\d\d)` \|", read_page("docs/reference/protocol.md"), re.MULTILINE)
    assert rows == names
    assert set(names) <= set(re.findall(r"`(\d{4}-\d\d-\d\d)`", read_page("README.md")))


def test_reasons() -> None:
    """The page about errors explains every reason that the server sends."""
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "axolotl_server").rglob("*.py"))
    code += (ROOT / "axolotl_core" / "errors.py").read_text(encoding="utf-8")
    given = set(re.findall(r'"reason": "([a-z_]+)"', code))
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| [^|]+ \| [^|]+ \|$", read_page("docs/reference/errors.md"), re.MULTILINE)
    explained = {reason for row in rows for reason in re.findall(r"[a-z_]+", row)}
    assert given - explained == set()


def test_exception_classes() -> None:
    """The tree of exceptions has all public classes, with their real base classes and codes."""
    public = {path.rpartition(".")[2]: found for path, found in public_names().items()}
    [tree] = [block.text for block in blocks("text") if block.text.startswith("AxolotlError\n")]
    ancestors: list[type] = []
    drawn = set()
    for prefix, names, note in re.findall(r"^([ │├└─]*)(\w+(?:, \w+)*)(.*)$", tree, re.MULTILINE):
        del ancestors[len(prefix) // 3 :]
        found = [getattr(errors, name, None) or public[name] for name in names.split(", ")]
        assert all(one.__bases__[-1] in (ancestors[-1:] or [Exception]) for one in found), names
        code = re.match(r" +(-\d+)", note)
        assert code is None or found[0].code == int(code[1]), names
        ancestors.append(found[0])
        drawn.update(found)
    raised = {one for one in public.values() if isinstance(one, type) and issubclass(one, AxolotlError)}
    assert raised <= drawn


def commands() -> set[str]:
    """List all commands, those of groups with the name of their group."""
    root: Any = get_command(app)
    groups = [("", root), *((f"{name} ", command) for name, command in root.commands.items())]
    names = {f"{group}{name}" for group, command in groups for name in getattr(command, "commands", ())}
    return names - {name for name, command in root.commands.items() if hasattr(command, "commands")}


def test_commands() -> None:
    """The page about the command line has a section for every command."""
    titles = set(re.findall(r"^## (.+)$", read_page("docs/operate/cli.md"), re.MULTILINE))
    assert titles - commands() == {"Targets", "Running servers", "Exit codes"}
    assert commands() - titles == set()


def test_benchmarks() -> None:
    """The page about performance explains every benchmark."""
    page = read_page("docs/reference/performance.md").partition("## Methodology")[2]
    explained = re.findall(r"^\| ([a-z0-9 ]+) \|", page, re.MULTILINE)
    assert explained == [scenario.name for scenario in SCENARIOS]
