"""Tools that run in processes, which can be killed whatever the code does."""

import asyncio
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Final

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Invoke
from axolotl_server.execution.threads import in_loop

if TYPE_CHECKING:
    from axolotl_server.execution.process_pool import ProcessPool

_WARM_AFTER_SECONDS: Final = 1.0
"""Short enough for the first call, long enough for commands that start a server only to inspect it."""


class ProcessRunner:
    """Runs tools in processes, of which every tool has its own.

    If a call is stopped, its process is killed, and no other call is lost. To be made in the thread of the loop.
    """

    def __init__(self, processes: int, max_memory_bytes: int | None) -> None:
        self._processes = processes
        self._max_memory_bytes = max_memory_bytes
        self._loop = asyncio.get_running_loop()
        self._adding = threading.Lock()
        self._pools: weakref.WeakSet[ProcessPool] = weakref.WeakSet()
        self.killed = 0
        """How many processes were killed because their call was stopped."""

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Return the function that runs a tool in a process; its processes end when it can no longer be called.

        A tool that cannot be sent to a process raises ConfigurationError.
        """
        from axolotl_server.execution.process_pool import ToolRunner  # few servers have processes

        tool_runner = ToolRunner(spec, self._processes, self._max_memory_bytes, self._count_killed)
        pool = tool_runner.pool
        with self._adding:
            self._pools.add(pool)
        in_loop(self._loop, partial(self._loop.call_later, _WARM_AFTER_SECONDS, pool.warm))
        # In the loop, because the garbage collector may run in a thread that holds any lock. Not at exit, because a
        # fork of the server would end its processes.
        weakref.finalize(tool_runner, in_loop, self._loop, pool.close).atexit = False
        return tool_runner.invoke

    @property
    def processes(self) -> int:
        """The number of processes."""
        return sum(map(len, self._all_pools()))

    def close(self) -> None:
        """End all processes."""
        for pool in self._all_pools():
            pool.close()

    def _count_killed(self) -> None:
        self.killed += 1

    def _all_pools(self) -> "tuple[ProcessPool, ...]":
        with self._adding:
            return tuple(self._pools)
