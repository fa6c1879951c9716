"""Settings that every test shares."""

from collections.abc import Generator

import pytest
from hypothesis import settings

# A busy machine is slow, not wrong: an example may take its time.
settings.register_profile("axolotl", deadline=None)
settings.load_profile("axolotl")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make sure that what a test printed can be sent to another process: some print what is no Unicode on purpose."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report
