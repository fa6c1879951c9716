"""ToolRegistry with threads: readers see whole changes only."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from axolotl_core import ToolRegistry
from tests.support.core.sample_tools import Named

RANGE = 50
RANGES = 20


@pytest.fixture(autouse=True)
def _restless_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def read_until(done: Event, look: Callable[[], None]) -> int:
    """Look again and again until the writer is done, and once more after that."""
    looks = 0
    while not done.is_set():
        look()
        looks += 1
    look()
    return looks


def test_readers_never_see_a_part_of_a_range() -> None:
    """During the registration of 1,000 tools, readers see only whole ranges."""
    registry = ToolRegistry()
    ranges = [[Named(f"tool-{each}-{number}") for number in range(RANGE)] for each in range(RANGES)]
    done = Event()
    ready = Barrier(4)

    def look() -> None:
        listed = registry.get_all()
        assert len(listed) % RANGE == 0
        assert len(registry) >= len(listed)
        for tool in listed[-1:]:
            assert registry.try_get(tool.name.upper()) is tool

    def read() -> int:
        ready.wait(10)
        return read_until(done, look)

    def write() -> None:
        ready.wait(10)
        try:
            for tools in ranges:
                registry.register_range(tools)
        finally:
            done.set()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result(60)
        assert all(reader.result(60) >= 0 for reader in readers)
    assert len(registry) == RANGE * RANGES


def test_writers_do_not_lose_tools_of_each_other() -> None:
    """Tools registered one by one from several threads are all there, each name once."""
    registry = ToolRegistry()
    ready = Barrier(4)

    def write(case: Callable[[str], str]) -> int:
        ready.wait(10)
        return sum(registry.register(Named(case(f"tool-{number}"))) for number in range(250))

    cases: list[Callable[[str], str]] = [str.upper, str.lower, str.title, str.swapcase]
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(write, cases))
    assert sum(won) == len(registry) == 250


def test_listeners_see_the_content_of_their_own_change() -> None:
    """Changes are serialized: listeners never see a concurrent change."""
    registry = ToolRegistry()
    sizes: list[int] = []
    registry.on_change(lambda: sizes.append(len(registry)))
    ready = Barrier(4)

    def write(which: int) -> None:
        ready.wait(10)
        for number in range(50):
            registry.register(Named(f"tool-{which}-{number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sizes == list(range(1, 201))
