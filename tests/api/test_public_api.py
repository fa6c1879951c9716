"""The recorded public API: nothing disappears or changes unnoticed."""

import axolotl_core
import axolotl_server
import axolotl_testing
from tests.api.recording import DEPRECATED, PUBLIC, public_api, public_names

HINT = "Record the change with `python -m tests.api`, and describe it in CHANGELOG.md."


def test_nothing_was_removed() -> None:
    """A recorded line exists, or was deprecated before."""
    removed = set(recorded()) - set(public_api()) - deprecated()
    assert not removed, f"Removed or changed without a line in {DEPRECATED.name}:\n" + "\n".join(sorted(removed))


def test_everything_is_recorded() -> None:
    """A new line is recorded, so that a reviewer sees it."""
    added = set(public_api()) - set(recorded())
    assert not added, f"{HINT}\n" + "\n".join(sorted(added))


def test_the_record_covers_every_kind() -> None:
    """The record knows signatures, members, commands, options, settings and reasons."""
    lines = set(recorded())
    assert {
        "import axolotl_core.ITool.execute(self, arguments, context)",
        "command axolotl serve --port",
        "setting limits.timeout_seconds",
        "reason overloaded",
    } <= lines
    assert any(line.startswith("import axolotl_server.connect(") for line in lines)


def test_the_reference_names_what_the_packages_export() -> None:
    """The reference has all names of the packages, and names them by their shortest path."""
    exported = {
        f"{package.__name__}.{name}"
        for package in (axolotl_core, axolotl_server, axolotl_testing)
        for name in package.__all__
        if not name.startswith("_")
    }
    names = public_names()
    assert exported - names.keys() == set()
    assert len({path.rpartition(".")[2] for path in names}) == len(names)


def recorded() -> list[str]:
    return PUBLIC.read_text(encoding="utf-8").splitlines()


def deprecated() -> set[str]:
    lines = DEPRECATED.read_text(encoding="utf-8").splitlines()
    return {line.rpartition(" # since ")[0] for line in lines if " # since " in line and not line.startswith("#")}
