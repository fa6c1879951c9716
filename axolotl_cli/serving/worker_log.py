"""The log of a supervisor: what happens to its workers."""

import logging
from collections.abc import Sequence
from typing import Final

from axolotl_cli.serving.worker_process import WorkerProcess

_log: Final = logging.getLogger("axolotl")


class WorkerLog:
    """Logs what happens to workers."""

    def reloading(self, files: Sequence[str]) -> None:
        _log.info("reloading: each worker is replaced by a new one")

    def started(self, worker: WorkerProcess) -> None:
        _log.info("worker %d (process %d) serves", worker.number, worker.pid)
        if worker.description["address_changed"]:
            _log.warning("the address in the settings changed: start the server again to listen there")

    def serving(self, workers: Sequence[WorkerProcess], seconds: float, *, is_reload: bool) -> None:
        pids = ", ".join(str(worker.pid) for worker in workers)
        if is_reload:
            _log.info("reloaded: %s", pids)
        else:
            _log.info("%d %s: %s", len(workers), "worker serves" if len(workers) == 1 else "workers serve", pids)

    def failed(self, worker: WorkerProcess, *, is_reload: bool, is_serving: bool) -> None:
        _log.error("worker %d (process %d) %s before it served", worker.number, worker.pid, worker.ending)
        if is_reload:
            _log.error("the reload failed: workers that were not replaced keep serving")

    def given_up(self) -> None:
        _log.critical("no worker serves, and none can be started: giving up")

    def ended(self, worker: WorkerProcess) -> None:
        _log.error("worker %d (process %d) %s: starting another", worker.number, worker.pid, worker.ending)
