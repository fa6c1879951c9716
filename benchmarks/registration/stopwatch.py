"""The time of one registration."""

import time
from collections.abc import Callable

from benchmarks.servers.functions import MANY, Function, typed_functions


def timed(register: Callable[[list[Function]], None]) -> None:
    """Register many functions and print the CPU seconds, not counting imports and definitions."""
    functions = typed_functions(MANY["thousand"])
    begin = time.process_time()
    register(functions)
    print(time.process_time() - begin)
