"""The commands behind `make release`."""

import argparse
import sys
from pathlib import Path

from tests.release.distributions import build_twice, check_contents, write_sbom
from tests.release.installed import check_installation
from tests.release.scaffolding import check_scaffold
from tests.release.sources import changelog_section, version
from tests.release.vulnerabilities import Verdict, audit

LOCKS = ("runtime", "dev")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.release", description="Build and verify a release.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="Build the sdist and the wheel twice, and install the wheel alone.")
    build.add_argument("--output", type=Path, default=Path("dist"))
    build.add_argument("--tag", help="Fail unless the version has this tag and a section in the changelog.")
    check = commands.add_parser("audit", help="Look for known vulnerabilities in the lock files.")
    check.add_argument("--strict", action="store_true", help="Fail if packages could not be audited.")
    commands.add_parser("scaffold", help="Create projects with the wheel in an environment of its own, and check them.")
    options = parser.parse_args()
    if options.command == "scaffold":
        return check_scaffold()
    if options.command == "audit":
        return _audit(options.strict)
    return _build(options.output, options.tag)


def _build(output: Path, tag: str | None) -> int:
    if tag is not None:
        _check_tag(tag)
    wheel, sdist = build_twice(output)
    sbom = write_sbom(output)
    check_contents(wheel, sdist)
    check_installation(wheel)
    print(f"{wheel.name}, {sdist.name} and {sbom.name}: reproducible, complete, and usable without the checkout")
    return 0


def _check_tag(tag: str) -> None:
    if tag != f"v{version()}":
        raise SystemExit(f"The tag is {tag}, but axolotl_core/_version.py has the version {version()}.")
    if changelog_section(version()) is None:
        raise SystemExit(f"CHANGELOG.md has no section for {version()}: rename Unreleased to [{version()}] - DATE.")


def _audit(is_strict: bool) -> int:
    verdicts = [audit(Path("requirements", f"{name}.lock")) for name in LOCKS]
    if Verdict.VULNERABLE in verdicts:
        return 1
    return 1 if is_strict and Verdict.NOT_AUDITED in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
