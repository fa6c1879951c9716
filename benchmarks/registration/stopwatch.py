"""Time one registration and print the result."""

import time
from collections.abc import Callable

from benchmarks.servers.functions import MANY, Function, typed_functions


def timed(register: Callable[[list[Function]], None]) -> None:
    """Register many functions and print the CPU seconds it took; imports and definitions do not count."""
    functions = typed_functions(MANY)
    begin = time.process_time()
    register(functions)
    print(time.process_time() - begin)
