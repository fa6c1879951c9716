"""Settings that every test shares."""

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.support.stall_log import hide_stalls

pytest_plugins = ("pytester",)

# A busy machine is slow: examples have no time limit.
settings.register_profile("axolotl", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("axolotl")

# A shell lets commands in the background ignore Ctrl-C, and all processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hide_stalls()


def pytest_xdist_auto_num_workers() -> int:
    """Run two workers more than there are processors, because many tests wait for processes and deadlines."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that start processes as slow; workers begin with files that have slow tests, to end together."""
    for item in items:
        if "processes" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make the captured output of a test encodable for xdist; some tests print invalid Unicode."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report
